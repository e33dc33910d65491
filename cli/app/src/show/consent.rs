//! The question that `run` puts at a terminal.

use std::io::BufRead;

use assize_plan::{Bundle, Deeds};

use crate::output::{printable, talk};

/// Lists what the plan does and asks; anything but `yes` is a no.
pub fn ask(bundle: &Bundle, deeds: &Deeds) -> bool {
    let mut text = format!(
        "plan {} of study `{}` will\n",
        bundle.hash,
        printable(&bundle.plan.study)
    );
    for command in &deeds.commands {
        let argv: Vec<String> = command
            .argv
            .iter()
            .map(|argument| printable(argument))
            .collect();
        text.push_str(&format!(
            "  run for {}: {:?}\n",
            printable(&command.arm),
            argv
        ));
        if !command.environment.is_empty() {
            text.push_str(&format!(
                "    with the variables {}\n",
                printable(&command.environment.join(" "))
            ));
        }
    }
    for (arm, address) in &deeds.addresses {
        text.push_str(&format!(
            "  send requests of {} to {}\n",
            printable(arm),
            printable(address)
        ));
    }
    for arm in &deeds.unverified {
        text.push_str(&format!(
            "  take any certificate from the peer of {}\n",
            printable(arm)
        ));
    }
    for name in &deeds.credentials {
        text.push_str(&format!("  send the value of {}\n", printable(name)));
    }
    text.push_str("execute it? type yes: ");
    talk(&text);
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}
