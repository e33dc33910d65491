//! The laws as `docs/timing.md` states them. What the document says and what is tested stay one text.

const DOCUMENT: &str = include_str!("../../../../docs/timing.md");

/// Each statement, with the test or the check in `laws` that holds it.
const STATED: &[(&str, &str)] = &[
    ("Times are ordered.", "laws::times_are_ordered"),
    (
        "No stamp is invented.",
        "laws::entries_carry_the_drivers_instants",
    ),
    (
        "Each request has exactly one terminal state.",
        "laws::one_terminal_a_request",
    ),
    (
        "The sink and the exchanges agree.",
        "laws::entries_and_exchanges_agree",
    ),
    (
        "Intended instants are the plan's.",
        "laws::intended_instants_are_the_plans, a_late_driver_shifts_no_intended_instant",
    ),
    (
        "First in, first out.",
        "laws::requests_go_first_in_first_out",
    ),
    (
        "An open load is open.",
        "laws::dispatch_is_on_time, an_open_load_dispatches_alike_whatever_the_peer_does",
    ),
    (
        "A limit holds, and is used.",
        "laws::never_more_in_flight_than_declared, laws::a_freed_slot_is_refilled_at_once",
    ),
    (
        "An event has the time of the receive that completed it.",
        "laws::events_carry_the_time_of_their_receive",
    ),
    (
        "Any cut of the bytes gives the same exchanges.",
        "any_cut_of_the_bytes_gives_the_same_exchanges",
    ),
    (
        "Nothing is lost.",
        "laws::nothing_is_lost, a_connection_that_dies_at_any_byte_loses_nothing",
    ),
    (
        "Deadlines fire at their instants.",
        "laws::deadlines_fire_at_their_instants, laws::no_deadline_fires_early_or_is_passed_over",
    ),
    ("No wake is for nothing.", "laws::no_wake_is_for_nothing"),
    ("Connections are bounded.", "laws::connections_are_bounded"),
    ("A replay is identical.", "laws::a_replay_is_identical"),
    ("No order of calls panics.", "no_order_of_calls_panics"),
];

#[test]
fn the_document_states_what_is_tested() {
    let headings: Vec<&str> = DOCUMENT
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("**"))
        .map(|(heading, _)| heading)
        .collect();
    let tested: Vec<&str> = STATED.iter().map(|(statement, _)| *statement).collect();
    assert_eq!(headings, tested);
    let sources = concat!(include_str!("laws.rs"), include_str!("main.rs"));
    for name in STATED.iter().flat_map(|(_, names)| names.split(", ")) {
        let function = format!("fn {}(", name.trim_start_matches("laws::"));
        assert!(sources.contains(&function), "{function}");
    }
}
