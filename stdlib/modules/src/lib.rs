//! The library modules of the study language, embedded.
//!
//! A study names one with `use: [std/rules/paired-sign]`. Library modules do not change within a
//! version of the language, so that no study means something else after an update.

/// Every library module: the name that `use` takes, and its text; sorted by name.
pub const ALL: &[(&str, &str)] = &[
    (
        "std/engines/llamacpp",
        include_str!("../modules/engines/llamacpp.yaml"),
    ),
    (
        "std/engines/openai-hosted",
        include_str!("../modules/engines/openai-hosted.yaml"),
    ),
    (
        "std/engines/sim",
        include_str!("../modules/engines/sim.yaml"),
    ),
    (
        "std/engines/vllm",
        include_str!("../modules/engines/vllm.yaml"),
    ),
    (
        "std/rules/paired-sign",
        include_str!("../modules/rules/paired-sign.yaml"),
    ),
];

/// The text of a library module.
pub fn get(name: &str) -> Option<&'static str> {
    ALL.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_say_what_the_module_says() {
        assert!(ALL.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, text) in ALL {
            let last = name.rsplit('/').next().unwrap_or_default();
            assert!(text.contains(&format!("\nmodule: {last}\n")), "{name}");
            assert_eq!(get(name), Some(*text));
        }
        assert_eq!(get("std/nothing"), None);
    }
}
