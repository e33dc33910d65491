//! Data on standard output, talk on standard error. A closed pipe is the end of the program.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use assize_verbs::{Problem, Status};

/// Writes data. A reader that has gone away ends the program, and that is no error.
pub fn data(text: &str) {
    write_or_end(&mut io::stdout().lock(), text);
}

/// Writes talk.
pub fn talk(text: &str) {
    write_or_end(&mut io::stderr().lock(), text);
}

fn write_or_end(out: &mut impl Write, text: &str) {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        // Nobody can be told that nobody can be told.
        Err(_) => std::process::exit(i32::from(Status::World as u8)),
    }
}

/// Whether colour is wanted on standard output or error.
#[derive(Clone, Copy, Debug)]
pub struct Terminal {
    /// Standard output is a terminal and `NO_COLOR` is not set.
    pub stdout_colour: bool,
    /// Standard error is a terminal and `NO_COLOR` is not set.
    pub stderr_colour: bool,
    /// Standard error is a terminal: a display may move on it.
    pub stderr_moves: bool,
    /// A person can be asked.
    pub can_ask: bool,
    /// Columns of standard output.
    pub width: usize,
}

impl Terminal {
    /// Looks at the standard streams.
    #[expect(
        clippy::disallowed_methods,
        reason = "the application owns the environment"
    )]
    pub fn look() -> Terminal {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let width = rustix::termios::tcgetwinsize(io::stdout())
            .map_or(100, |size| usize::from(size.ws_col));
        Terminal {
            stdout_colour: colour && out,
            stderr_colour: colour && err,
            stderr_moves: err,
            can_ask: io::stdin().is_terminal() && err,
            width: if width == 0 {
                100
            } else {
                width.clamp(60, 160)
            },
        }
    }
}

/// Says a problem on standard error.
pub fn problem(problem: &Problem, terminal: Terminal) {
    let (bold, red, off) = if terminal.stderr_colour {
        ("\x1b[1m", "\x1b[1;31m", "\x1b[0m")
    } else {
        ("", "", "")
    };
    let mut text = format!(
        "{red}error[{}]{off}{bold}: {}{off}\n",
        problem.code,
        printable(&problem.message)
    );
    if let Some(help) = &problem.help {
        text.push_str(&format!("  help: {}\n", printable(help)));
    }
    text.push_str(&format!("  for more: assize explain {}\n", problem.code));
    talk(&text);
}

/// Says on standard error what is no problem yet.
pub fn warning(text: &str, terminal: Terminal) {
    let (yellow, off) = if terminal.stderr_colour {
        ("\x1b[1;33m", "\x1b[0m")
    } else {
        ("", "")
    };
    talk(&format!("{yellow}warning{off}: {}\n", printable(text)));
}

/// Text from outside, with control characters made visible.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            if c.is_control() && c != '\n' {
                c.escape_default().collect()
            } else {
                vec![c]
            }
        })
        .collect()
}

/// A status as the program's.
pub fn exit(status: Status) -> ExitCode {
    ExitCode::from(status as u8)
}
