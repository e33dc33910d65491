//! The assize command.

fn main() {}
