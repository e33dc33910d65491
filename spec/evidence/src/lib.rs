//! The evidence: wire log, journal, exchange records, layout; encode and decode.
