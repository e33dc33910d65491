//! Study to plan, as a pure function of the study and a World.
