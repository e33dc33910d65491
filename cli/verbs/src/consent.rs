//! Consent: a plan is a program.
//!
//! A plan that runs commands, or speaks to an address other than loopback, is executed only when its
//! hash was said, or a person at a terminal has said yes to the list of what it would do.

use assize_codes::E0704;
use assize_host::Base;
use assize_plan::{ArmTarget, Bundle, ServerKind, Tls};

use crate::problem::Problem;

/// The least hex digits that name a plan.
const LEAST_DIGITS: usize = 8;

/// What executing a plan does to the world outside its evidence folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Argument vectors that are run, by arm, with the names of the variables that they get.
    pub commands: Vec<Command>,
    /// Addresses that are spoken to, by arm.
    pub addresses: Vec<(String, String)>,
    /// Arms whose peer is not verified, though spoken to by `https`.
    pub unverified: Vec<String>,
    /// Environment variables whose values are sent as credentials.
    pub credentials: Vec<String>,
}

/// A command of an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The arm.
    pub arm: String,
    /// The argument vector.
    pub argv: Vec<String>,
    /// Names of the variables that are set or handed on.
    pub environment: Vec<String>,
}

impl Deeds {
    /// What executing `bundle` would do.
    pub fn of(bundle: &Bundle) -> Result<Deeds, Problem> {
        let mut deeds = Deeds::default();
        for arm in &bundle.plan.arms {
            let base = match &arm.target {
                ArmTarget::Endpoint { base } => base.clone(),
                ArmTarget::Server { object } => {
                    let server = bundle.server(*object)?;
                    if let ServerKind::Command {
                        command, env, pass, ..
                    } = &server.kind
                    {
                        deeds.commands.push(Command {
                            arm: arm.name.clone(),
                            argv: command.clone(),
                            environment: env.keys().chain(pass).cloned().collect(),
                        });
                    }
                    server.base
                }
            };
            if arm.tls == Some(Tls::Insecure) {
                deeds.unverified.push(arm.name.clone());
            }
            deeds.addresses.push((arm.name.clone(), base));
        }
        deeds.credentials = bundle
            .plan
            .secret_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
        Ok(deeds)
    }

    /// Whether the plan's hash must be said.
    pub fn need_consent(&self) -> bool {
        let loopback = |base: &str| Base::parse(base).is_some_and(|base| base.is_loopback());
        !self.commands.is_empty() || self.addresses.iter().any(|(_, base)| !loopback(base))
    }
}

/// How a plan was consented to, as the journal keeps it.
///
/// `approve` is what was said on the command line; `ask` puts the list before a person, and is
/// `None` where there is no terminal.
pub fn obtain(
    bundle: &Bundle,
    approve: Option<&str>,
    ask: Option<&mut dyn FnMut(&Deeds) -> bool>,
) -> Result<&'static str, Problem> {
    let deeds = Deeds::of(bundle)?;
    let hash = bundle.hash.hex();
    if let Some(said) = approve {
        let said = said.to_ascii_lowercase();
        if said.len() < LEAST_DIGITS || !hash.starts_with(&said) {
            return Err(Problem::refusal(
                E0704,
                format!("--approve {said} does not name this plan, whose hash is {hash}"),
            )
            .help(format!(
                "say at least {LEAST_DIGITS} digits: --approve {}",
                &hash[..LEAST_DIGITS]
            )));
        }
        return Ok("approved");
    }
    if !deeds.need_consent() {
        return Ok("not needed");
    }
    if ask.is_some_and(|ask| ask(&deeds)) {
        return Ok("terminal");
    }
    Err(Problem::refusal(
        E0704,
        "this plan runs commands or speaks to other machines, and its hash was not said",
    )
    .help(format!(
        "read what it does to the world in the plan's README.txt, then: --approve {}",
        &hash[..LEAST_DIGITS]
    )))
}
