//! A display on standard error, from a thread of its own, at most four times a second. It reads
//! counters that the measurement writes anyway.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use assize_core::RunControl;
use assize_host::RunEvent;
use assize_plan::Plan;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::{Terminal, printable, talk};

/// The display.
pub struct Progress {
    bar: ProgressBar,
    ticker: Option<Ticker>,
    is_plain: bool,
}

struct Ticker {
    stop: std::sync::mpsc::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Progress {
    /// The display of a whole plan: one step a unit.
    pub fn start(plan: &Plan, control: Arc<RunControl>, terminal: Terminal) -> Progress {
        Progress::new(plan.units.len() as u64, "units", control, terminal)
    }

    /// The display of one cell: one step a request.
    pub fn of_requests(requests: u64, control: Arc<RunControl>, terminal: Terminal) -> Progress {
        Progress::new(requests, "requests", control, terminal)
    }

    fn new(
        steps: u64,
        what: &'static str,
        control: Arc<RunControl>,
        terminal: Terminal,
    ) -> Progress {
        let target = if terminal.stderr_moves {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(steps), target);
        let template = "{elapsed_precise} [{bar:24}] {pos}/{len} {prefix}  {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(what);
        let ticker = terminal
            .stderr_moves
            .then(|| Ticker::start(bar.clone(), what == "requests", control));
        Progress {
            bar,
            ticker,
            is_plain: !terminal.stderr_moves,
        }
    }

    /// Shows what the run says of itself.
    pub fn show(&mut self, event: RunEvent<'_>) {
        match event {
            RunEvent::Unit { unit, of } => {
                if self.bar.length() == Some(of as u64) {
                    self.bar.set_position(u64::from(unit.n));
                }
                let line = format!("{} block {} {}", unit.set, unit.block, printable(&unit.arm));
                self.bar.set_message(line.clone());
                if self.is_plain && of > 1 {
                    talk(&format!("unit {} of {of}: {line}\n", unit.n + 1));
                }
            }
            RunEvent::Starting => self.bar.set_message("starting the server"),
            RunEvent::Cell { cell, warmup } => {
                let what = if warmup { "warmup" } else { cell.name.as_str() };
                self.bar
                    .set_message(format!("{} ({} requests)", printable(what), cell.requests));
            }
            RunEvent::CellEnded { .. } => {}
            RunEvent::Sealing => self.bar.set_message("sealing"),
        }
    }

    /// Takes the display away.
    pub fn finish(&mut self) {
        if let Some(ticker) = self.ticker.take() {
            drop(ticker.stop);
            // A display that died has nothing left to show.
            let _ = ticker.thread.join();
        }
        self.bar.finish_and_clear();
    }
}

impl Ticker {
    fn start(bar: ProgressBar, counts_requests: bool, control: Arc<RunControl>) -> Ticker {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(250))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                if counts_requests {
                    bar.set_position(control.progress.ended.load(Ordering::Relaxed));
                }
                bar.tick();
            }
        });
        Ticker { stop, thread }
    }
}
