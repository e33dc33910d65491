//! Real server processes: started, watched, and gone for certain.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at processes and descriptors of this host"
)]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assize_codes::{E0901, E0902, E0906, E0907, E0908, E0909};
use assize_host::{Processes, Programs, Secrets, Servers, StartServer, Started, WorldFailure};
use assize_plan::{ServerDef, ServerKind};
use assize_units::DurNs;

const PLAYERS: &str = env!("CARGO_BIN_EXE_assize-host-players");
/// No test waits this long unless it fails.
const BOUND: Duration = Duration::from_mins(2);

fn programs() -> Programs {
    Programs {
        keeper: PLAYERS.into(),
        keeper_arguments: vec!["keep".into()],
        sim: PLAYERS.into(),
    }
}

fn processes() -> Processes {
    Processes::new(programs())
}

/// A port that was free a moment ago, from below the range from which the kernel itself takes
/// ports for outgoing connections.
fn free_port() -> u16 {
    static NEXT: Mutex<u16> = Mutex::new(0);
    let mut next = NEXT.lock().unwrap();
    let base = 20_000 + (std::process::id() % 1_000) as u16 * 10;
    loop {
        let port = base + *next;
        *next += 1;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn def(port: u16, player: &[&str]) -> ServerDef {
    let mut command = vec![PLAYERS.to_owned()];
    command.extend(player.iter().map(|word| (*word).to_owned()));
    ServerDef {
        format: "assize-server/1".to_owned(),
        base: format!("http://127.0.0.1:{port}/v1"),
        ready_path: "/health".to_owned(),
        ready_within_ns: DurNs::from_s(60),
        kind: ServerKind::Command {
            command,
            env: [("MODE".to_owned(), "1".to_owned())].into(),
            pass: vec!["CARGO_MANIFEST_DIR".to_owned()],
            stop_signal: "TERM".to_owned(),
            stop_within_ns: DurNs::from_ms(200),
        },
    }
}

fn healthy() -> ServerDef {
    let port = free_port();
    def(port, &["healthy", &port.to_string()])
}

fn start(servers: &mut Processes, def: &ServerDef) -> Result<Started, WorldFailure> {
    start_with_log(servers, def, Box::new(io::sink()))
}

fn start_with_log(
    servers: &mut Processes,
    def: &ServerDef,
    log: Box<dyn Write + Send>,
) -> Result<Started, WorldFailure> {
    let arm = "fa3";
    servers.start(StartServer { arm, def, log })
}

/// A log that the test reads.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn text(&self) -> String {
        String::from_utf8(self.lock().clone()).unwrap()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The connections of a familied server, its child and its daemonised grandchild.
struct Family {
    listener: TcpListener,
}

impl Family {
    fn new() -> Family {
        Family {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        }
    }

    fn def(&self) -> ServerDef {
        let port = free_port();
        let watch = self.listener.local_addr().unwrap().to_string();
        def(port, &["familied", &port.to_string(), &watch])
    }

    /// In the order server, child, daemon.
    fn connections(&self) -> [TcpStream; 3] {
        let mut connections: Vec<(u8, TcpStream)> = (0..3)
            .map(|_| {
                let (mut stream, _) = self.listener.accept().unwrap();
                let mut place = [0];
                stream.read_exact(&mut place).unwrap();
                (place[0], stream)
            })
            .collect();
        connections.sort_by_key(|(place, _)| *place);
        [0, 1, 2].map(|at: usize| connections[at].1.try_clone().unwrap())
    }
}

/// Whether the process at the other end is gone by now.
fn is_gone(connection: &TcpStream) -> bool {
    connection.set_nonblocking(true).unwrap();
    !matches!((&*connection).read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Waits until the process at the other end is gone.
fn await_gone(connection: &TcpStream) {
    connection.set_read_timeout(Some(BOUND)).unwrap();
    match (&*connection).read(&mut [0]) {
        Ok(0) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
        other => panic!("still there: {other:?}"),
    }
}

fn alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_server_is_started_checked_and_stopped() {
    let mut servers = processes();
    let def = healthy();
    let started = start(&mut servers, &def).unwrap();
    assert_eq!(started.command[1], "healthy");
    assert!(alive(started.pid));
    servers.check().unwrap();
    let stopped = servers.stop().unwrap();
    assert_eq!(stopped.status, "signal 15");
    assert!(!stopped.killed);
    assert!(!alive(started.pid));
    assert_eq!(servers.stop().unwrap().status, "not running");
}

#[test]
fn readiness_is_waited_for() {
    let port = free_port();
    let mut servers = processes();
    start(&mut servers, &def(port, &["slow", &port.to_string(), "3"])).unwrap();
    servers.stop().unwrap();
}

#[test]
fn a_server_gets_a_session_and_no_more_than_its_definition_says() {
    let port = free_port();
    let def = def(port, &["environment", &port.to_string()]);
    let log = Log::default();
    let mut servers = processes();
    start_with_log(&mut servers, &def, Box::new(log.clone())).unwrap();
    servers.stop().unwrap();
    let text = log.text();
    let mut lines = text.lines();
    let manifest = env!("CARGO_MANIFEST_DIR");
    let runners_own = ["LANG", "TMPDIR"].map(|name| {
        let value = std::env::var(name).ok()?;
        Some(format!("{name}={value}"))
    });
    let mut expected = vec![
        format!("CARGO_MANIFEST_DIR={manifest}"),
        "MODE=1".to_owned(),
    ];
    expected.extend(runners_own.into_iter().flatten());
    expected.sort();
    assert_eq!(lines.next().unwrap(), expected.join(","));
    assert_eq!(lines.next(), Some("stdin Ok(0)"));
    assert_eq!(lines.next(), Some("leads true"));
    assert_eq!(lines.next(), None);
}

#[test]
fn nothing_of_a_family_outlives_a_stop() {
    let family = Family::new();
    let mut servers = processes();
    start(&mut servers, &family.def()).unwrap();
    let connections = family.connections();
    assert!(!connections.iter().any(is_gone));
    let stopped = servers.stop().unwrap();
    assert!(connections.iter().all(is_gone));
    assert_eq!(
        stopped.status,
        "signal 15; 2 processes that it left behind were killed"
    );
}

#[test]
fn nothing_of_a_family_outlives_a_killed_runner() {
    let family = Family::new();
    let (_, def) = family.def().to_object();
    let mut runner = Command::new(PLAYERS)
        .arg("run")
        .arg(String::from_utf8(def).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(runner.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let connections = family.connections();
    assert!(!connections.iter().any(is_gone), "{line}");
    runner.kill().unwrap();
    runner.wait().unwrap();
    for connection in &connections {
        connection.set_nonblocking(false).unwrap();
        await_gone(connection);
    }
}

#[test]
fn a_dropped_runner_stops_its_server() {
    let family = Family::new();
    let mut servers = processes();
    start(&mut servers, &family.def()).unwrap();
    let connections = family.connections();
    drop(servers);
    assert!(connections.iter().all(is_gone));
}

#[test]
fn a_server_does_not_outlive_a_killed_keeper() {
    let family = Family::new();
    let mut servers = processes();
    let started = start(&mut servers, &family.def()).unwrap();
    let connections = family.connections();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", started.pid)).unwrap();
    let keeper = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    let killed = Command::new("/bin/sh")
        .args(["-c", &format!("kill -9 {keeper}")])
        .status()
        .unwrap();
    assert!(killed.success());
    await_gone(&connections[0]);
    let failure = servers.check().unwrap_err();
    assert_eq!(failure.code, E0907);
    assert_eq!(servers.stop().unwrap_err().code, E0909);
    // The child is of the server's session. The daemon is of its own and out of reach: it is let
    // go by hand here, and the failure above says that nobody can tell.
    await_gone(&connections[1]);
    end_by_port(&connections[2]);
}

/// Kills the process at the other end of a connection of this test, found by its argument.
fn end_by_port(connection: &TcpStream) {
    let watch = connection.local_addr().unwrap().to_string();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let Ok(arguments) = std::fs::read(path.join("cmdline")) else {
            continue;
        };
        let text = String::from_utf8_lossy(&arguments);
        if text.contains("stay") && text.contains(&watch) {
            let pid = path.file_name().unwrap().to_str().unwrap();
            let kill = format!("kill -9 {pid}");
            Command::new("/bin/sh")
                .args(["-c", &kill])
                .status()
                .unwrap();
        }
    }
    connection.set_nonblocking(false).unwrap();
    await_gone(connection);
}

#[test]
fn a_server_that_ends_early_is_quoted() {
    let mut secrets = Secrets::none();
    secrets.insert("KEY", "s3cret".to_owned());
    let port = free_port();
    let mut servers = processes().masking(secrets);
    let failure = start(&mut servers, &def(port, &["exit", "7"])).unwrap_err();
    assert_eq!(failure.code, E0901);
    assert_eq!(
        failure.message,
        "it ended before it was ready: exit status 7\nthe last that it printed:\n\
         the model is not here: key=******"
    );
    // Nothing is left that would be in the way of the next.
    start(&mut servers, &healthy()).unwrap();
}

#[test]
fn a_server_that_is_never_ready_is_stopped() {
    let mut def = def(free_port(), &["silent"]);
    def.ready_within_ns = DurNs::from_ms(300);
    let failure = start(&mut processes(), &def).unwrap_err();
    assert_eq!(failure.code, E0901);
    assert!(
        failure.message.contains("/health within 300ms"),
        "{failure}"
    );
}

#[test]
fn a_command_that_does_not_exist_is_told_with_its_errno() {
    let mut def = healthy();
    if let ServerKind::Command { command, .. } = &mut def.kind {
        command[0] = "/no/such/program".to_owned();
    }
    let failure = start(&mut processes(), &def).unwrap_err();
    assert_eq!((failure.code, failure.errno), (E0901, 2));
}

#[test]
fn a_taken_port_is_found_before_anything_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let failure = start(&mut processes(), &def(port, &["silent"])).unwrap_err();
    assert_eq!(failure.code, E0906);
    assert_eq!(failure.subject, format!("127.0.0.1:{port}"));
}

#[test]
fn a_server_that_ends_by_itself_is_noticed_and_described() {
    let port = free_port();
    let mut servers = processes();
    start(
        &mut servers,
        &def(port, &["exit-after-ready", &port.to_string()]),
    )
    .unwrap();
    servers.check().unwrap();
    let connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
    await_gone(&connection);
    let failure = loop {
        if let Err(failure) = servers.check() {
            break failure;
        }
        std::thread::yield_now();
    };
    assert_eq!(failure.code, E0907);
    assert!(
        failure
            .message
            .starts_with("it ended by itself: exit status 3"),
        "{failure}"
    );
    let stopped = servers.stop().unwrap();
    assert_eq!(stopped.status, "ended by itself: exit status 3");
}

#[test]
fn fifty_mebibytes_of_output_block_nothing_and_are_all_kept() {
    let port = free_port();
    let log = Log::default();
    let mut servers = processes();
    start_with_log(
        &mut servers,
        &def(port, &["loud", &port.to_string(), "50"]),
        Box::new(log.clone()),
    )
    .unwrap();
    servers.stop().unwrap();
    let bytes = log.lock();
    assert_eq!(bytes.len(), (50 << 20) + "all said\n".len());
    assert!(bytes.ends_with(b"x\nall said\n"));
}

struct Unwritable;

impl Write for Unwritable {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(28))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_log_that_cannot_be_written_ends_the_run_not_the_server() {
    let port = free_port();
    let mut servers = processes();
    let def = def(port, &["loud", &port.to_string(), "1"]);
    let started = start_with_log(&mut servers, &def, Box::new(Unwritable)).unwrap();
    let failure = servers.check().unwrap_err();
    assert_eq!((failure.code, failure.errno), (E0902, 28));
    assert!(alive(started.pid));
    servers.stop().unwrap();
}

#[test]
fn a_keeper_that_cannot_be_or_is_none_is_told() {
    let mut missing = programs();
    missing.keeper = PathBuf::from("/no/such/keeper");
    let mut other = programs();
    other.keeper_arguments = vec!["exit".into(), "0".into()];
    let mut silent = programs();
    silent.keeper = PathBuf::from("/bin/true");
    for programs in [missing, other, silent] {
        let failure = start(&mut Processes::new(programs), &healthy()).unwrap_err();
        assert_eq!(failure.code, E0908, "{failure}");
    }
}

/// Descriptors of this process are counted in a process of its own: other tests of this one open
/// theirs at the same time.
#[test]
fn thirty_three_launches_leak_nothing() {
    let own = std::env::current_exe().unwrap();
    let status = Command::new(own)
        .args(["--exact", "launches_in_a_row", "--ignored", "--quiet"])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "run by thirty_three_launches_leak_nothing, in a process of its own"]
fn launches_in_a_row() {
    let count = |folder| std::fs::read_dir(folder).unwrap().count();
    let def = healthy();
    let mut servers = processes();
    let mut launch = || {
        start(&mut servers, &def).unwrap();
        servers.stop().unwrap();
    };
    launch();
    let before = count("/proc/self/fd");
    for _ in 1..33 {
        launch();
    }
    assert_eq!(count("/proc/self/fd"), before);
}
