//! Consent: a plan is a program.
//!
//! A plan that runs commands, or speaks to an address other than loopback, is executed only when its
//! hash was said, or a person at a terminal has said yes to the list of what it would do.

use assize_codes::E0704;
use assize_host::Base;
use assize_plan::{Bundle, Deeds};

use crate::problem::Problem;

/// The least hex digits that name a plan.
const LEAST_DIGITS: usize = 8;

/// Whether the plan's hash must be said.
pub fn is_needed(deeds: &Deeds) -> bool {
    let loopback = |base: &str| Base::parse(base).is_some_and(|base| base.is_loopback());
    !deeds.commands.is_empty() || deeds.addresses.iter().any(|(_, base)| !loopback(base))
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
    if !is_needed(&deeds) {
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
