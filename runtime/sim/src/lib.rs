//! A simulated LLM engine: sans-IO core, virtual-clock driver, HTTP host.
