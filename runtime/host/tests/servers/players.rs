//! The parts of tests/servers: a keeper, a runner that can be killed, and servers of every temper.
//!
//! Each process of a server's tree holds a connection to the test that started it (`watch`), and
//! never closes it: the kernel does, when the process is gone.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(target_os = "linux")]
#[allow(
    clippy::disallowed_methods,
    reason = "plays programs that are not of this project"
)]
mod linux {
    use std::ffi::OsString;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::{Command, ExitCode, Stdio};
    use std::time::Duration;

    use assize_host::{Processes, Programs, Servers, StartServer, keeper};
    use assize_plan::ServerDef;

    pub fn main() -> ExitCode {
        let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
        if arguments.first().is_some_and(|word| word == "keep") {
            return keeper::main(&arguments[1..]);
        }
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["healthy", port] => serve(port, 0),
            ["slow", port, refusals] => serve(port, refusals.parse().unwrap()),
            ["familied", port, watch] => familied(port, watch),
            ["orphan-maker", watch] => make_orphan(watch),
            ["stay", watch, place] => stay(watch, place),
            ["exit", code] => {
                println!("the model is not here: key=s3cret");
                ExitCode::from(code.parse::<u8>().unwrap())
            }
            ["exit-after-ready", port] => exit_after_one(port),
            ["silent"] => loop {
                std::thread::sleep(Duration::from_hours(1));
            },
            ["loud", port, mebibytes] => loud(port, mebibytes.parse().unwrap()),
            ["environment", port] => environment(port),
            ["run", def] => run(def),
            _ => ExitCode::from(2),
        }
    }

    /// A runner: starts the server, says its id, and waits to be killed.
    fn run(def: &str) -> ExitCode {
        let own = std::env::current_exe().unwrap();
        let mut servers = Processes::new(Programs {
            keeper: own.clone(),
            keeper_arguments: vec!["keep".into()],
            sim: own,
        });
        let def = ServerDef::from_bytes(def.as_bytes()).unwrap();
        let started = servers.start(StartServer {
            arm: "a",
            def: &def,
            log: Box::new(std::io::sink()),
        });
        println!("{}", started.unwrap().pid);
        loop {
            std::thread::sleep(Duration::from_hours(1));
        }
    }

    /// Answers 503 `refusals` times, then 200.
    fn serve(port: &str, refusals: u32) -> ExitCode {
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
        let mut asked = 0;
        loop {
            let status = if asked < refusals {
                "503 Wait"
            } else {
                "200 OK"
            };
            answer(&listener, status);
            asked += 1;
        }
    }

    fn answer(listener: &TcpListener, status: &str) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            request.push(byte[0]);
        }
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
    }

    /// A server with a child that ignores the request to end, and a daemonised grandchild that
    /// does so in a session of its own; it ignores it itself.
    fn familied(port: &str, watch: &str) -> ExitCode {
        let own = std::env::current_exe().unwrap();
        let _connection = connect(watch, "0");
        let mut child = deaf(&own, &["stay", watch, "1"]).spawn().unwrap();
        let made = deaf(&own, &["orphan-maker", watch]).status().unwrap();
        assert!(made.success());
        serve(port, 0);
        child.wait().unwrap();
        ExitCode::SUCCESS
    }

    /// Double fork and setsid: the grandchild's parent ends at once.
    fn make_orphan(watch: &str) -> ExitCode {
        rustix::process::setsid().unwrap();
        let own = std::env::current_exe().unwrap();
        #[expect(
            clippy::zombie_processes,
            reason = "to leave an orphan is what this is for"
        )]
        deaf(&own, &["stay", watch, "2"]).spawn().unwrap();
        ExitCode::SUCCESS
    }

    /// A command that ignores TERM, INT and HUP: what is ignored stays so across exec.
    fn deaf(program: &std::path::Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "trap '' TERM INT HUP; exec \"$0\" \"$@\""])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// The connection by which the test knows of this process, and its place in the family.
    fn connect(watch: &str, place: &str) -> TcpStream {
        let mut connection = TcpStream::connect(watch).unwrap();
        connection.write_all(place.as_bytes()).unwrap();
        connection
    }

    fn stay(watch: &str, place: &str) -> ExitCode {
        let _connection = connect(watch, place);
        loop {
            std::thread::sleep(Duration::from_hours(1));
        }
    }

    fn exit_after_one(port: &str) -> ExitCode {
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
        answer(&listener, "200 OK");
        // Lives until something else connects.
        let _ = listener.accept();
        println!("out of memory");
        ExitCode::from(3)
    }

    fn loud(port: &str, mebibytes: u32) -> ExitCode {
        let line = [[b'x'; 1023].as_slice(), b"\n"].concat();
        let block = line.repeat(1024);
        let mut stdout = std::io::stdout().lock();
        for _ in 0..mebibytes {
            stdout.write_all(&block).unwrap();
        }
        drop(stdout);
        eprintln!("all said");
        serve(port, 0)
    }

    fn environment(port: &str) -> ExitCode {
        let mut names: Vec<String> = std::env::vars_os()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .filter(|variable| !variable.starts_with("PATH=") && !variable.starts_with("HOME="))
            .collect();
        names.sort();
        println!("{}", names.join(","));
        let mut rest = String::new();
        let read = std::io::stdin().read_to_string(&mut rest);
        println!("stdin {read:?}");
        let own = rustix::process::getpid();
        let group = rustix::process::getpgrp();
        let session = rustix::process::getsid(None).unwrap();
        println!("leads {}", group == own && session == own);
        serve(port, 0)
    }
}
