//! What executing a plan does to the world outside its evidence folder: what a person is shown.

use crate::{ArmTarget, Bundle, BundleRefusal, ServerKind, Tls};

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
    /// What executing `bundle` would do. Refused where a server's object is missing or malformed.
    pub fn of(bundle: &Bundle) -> Result<Deeds, BundleRefusal> {
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
}
