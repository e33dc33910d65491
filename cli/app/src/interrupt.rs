//! Ctrl-C and TERM: the first asks the run to end in order, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use assize_codes::E0902;
use assize_core::RunControl;
use assize_sim::http::Stop;
use assize_verbs::Problem;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Signals stop a run.
pub fn stops(control: &Arc<RunControl>) -> Result<(), Problem> {
    let control = control.clone();
    on_signal(move || control.stop.store(true, Ordering::Relaxed))
}

/// Signals stop the simulated engine.
pub fn stops_sim() -> Result<Arc<Stop>, Problem> {
    let stop = Arc::new(Stop::new().map_err(|error| failed(&error))?);
    let thrown = stop.clone();
    on_signal(move || {
        if thrown.stop().is_err() {
            std::process::exit(143);
        }
    })?;
    Ok(stop)
}

fn on_signal(act: impl Fn() + Send + 'static) -> Result<(), Problem> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|error| failed(&error))?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut pending = signals.forever();
            if pending.next().is_some() {
                act();
            }
            if let Some(signal) = pending.next() {
                std::process::exit(128 + signal);
            }
        })
        .map_err(|error| failed(&error))?;
    Ok(())
}

fn failed(error: &std::io::Error) -> Problem {
    Problem::world(E0902, format!("listening for signals: {error}"))
}
