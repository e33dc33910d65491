//! Executes a plan: arms, cells, recorder, journal, seal.
