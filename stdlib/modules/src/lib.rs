//! The library modules of the study language, embedded.
