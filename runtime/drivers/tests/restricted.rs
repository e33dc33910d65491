//! Drivers in a process that may not do everything: under a seccomp filter, without descriptors.
//!
//! Each restriction is put on a process of its own: this test binary, started again for one of the
//! tests that are ignored otherwise.
#![allow(
    clippy::disallowed_methods,
    reason = "a test has to know its own binary to start it again"
)]
#![allow(unsafe_code, reason = "a seccomp filter is installed by prctl")]

use std::io;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, Driver, LoadSpec, NullSink, ReceiveMode, RequestSpec, RunControl,
    Session, Terminal,
};
use assize_drivers::{DriverChoice, EpollDriver, Probe, UringDriver, choose};
use assize_units::{DurNs, OffsetNs};

/// Runs one ignored test of this binary in a process of its own; what it printed.
fn restricted(test: &str) -> String {
    let binary = std::env::current_exe().expect("this binary");
    let output = Command::new(binary)
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "--test-threads=1",
            test,
        ])
        .output()
        .expect("starts again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    text
}

/// Lets a system call of this thread fail with `errno` from now on.
fn forbid(call: libc::c_long, errno: i32) -> io::Result<()> {
    let statement = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | (errno as u32 & libc::SECCOMP_RET_DATA);
    let call = u32::try_from(call).expect("a small number");
    let mut filter = [
        // The number of the system call is the first word of what the filter sees.
        statement((libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, 0, 0, 0),
        statement(
            (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            0,
            1,
            call,
        ),
        statement((libc::BPF_RET | libc::BPF_K) as u16, 0, 0, refuse),
        statement(
            (libc::BPF_RET | libc::BPF_K) as u16,
            0,
            0,
            libc::SECCOMP_RET_ALLOW,
        ),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: both calls take integers and a pointer to a program that lives through the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn report_choice_under_filter(errno: i32) {
    if let Err(error) = forbid(libc::SYS_io_uring_setup, errno) {
        println!("\nno filter here: {error}");
        return;
    }
    let facts = choose(DriverChoice::Any, Probe::SYSTEM)
        .expect("epoll")
        .facts();
    println!("\nchosen {}: {}", facts.name, facts.why);
    let pinned = choose(DriverChoice::Uring, Probe::SYSTEM).err();
    println!("pinned {}", pinned.expect("a refusal"));
}

fn check_choice_under_filter(test: &str, errno: &str) {
    let said = restricted(test);
    if let Some(reason) = said.lines().find(|line| line.starts_with("no filter here")) {
        println!("skipped: {reason}");
        return;
    }
    let line = |start: &str| {
        let mut lines = said.lines();
        lines
            .find(|line| line.starts_with(start))
            .expect(&said)
            .to_owned()
    };
    let chosen = line("chosen epoll: ");
    assert!(
        chosen.contains(&format!("io_uring_setup: {errno}")),
        "{chosen}"
    );
    assert!(chosen.contains("Seccomp: 2"), "{chosen}");
    assert!(chosen.ends_with("; using epoll"), "{chosen}");
    let pinned = line("pinned the plan asks for the io_uring driver, which is not to be had");
    assert!(pinned.contains(errno), "{pinned}");
}

#[test]
fn a_container_profile_that_forbids_io_uring_is_named() {
    check_choice_under_filter("under_a_filter_with_eperm", "EPERM");
    check_choice_under_filter("under_a_filter_with_enosys", "ENOSYS");
}

#[test]
#[ignore = "restricts its process; started by another test"]
fn under_a_filter_with_eperm() {
    report_choice_under_filter(libc::EPERM);
}

#[test]
#[ignore = "restricts its process; started by another test"]
fn under_a_filter_with_enosys() {
    report_choice_under_filter(libc::ENOSYS);
}

/// Its deadlines are in nanoseconds only with this call: the older one takes milliseconds, and
/// rustix takes that one unless it is built for Linux 5.11.
#[test]
fn epoll_waits_by_epoll_pwait2() {
    let said = restricted("without_epoll_pwait2");
    assert!(
        said.contains("no filter here") || said.contains("refused epoll_pwait2"),
        "{said}"
    );
}

#[test]
#[ignore = "restricts its process; started by another test"]
fn without_epoll_pwait2() {
    if let Err(error) = forbid(libc::SYS_epoll_pwait2, libc::ENOSYS) {
        println!("\nno filter here: {error}");
        return;
    }
    let failure = EpollDriver::new("a test").err().expect("a refusal");
    assert_eq!(failure.errno, libc::ENOSYS);
    println!("\nrefused {}", failure.operation);
}

#[test]
fn the_environment_does_not_alter_the_choice() {
    let names = ["ASSIZE_DRIVER", "ASSIZE_IO_URING", "IO_URING", "DRIVER"];
    let here = choose(DriverChoice::Any, Probe::SYSTEM).unwrap().facts();
    let binary = std::env::current_exe().expect("this binary");
    let output = Command::new(binary)
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "with_another_environment",
        ])
        .envs(names.map(|name| (name, "epoll")))
        .output()
        .expect("starts again");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(&format!("chosen {}\n", here.name)), "{said}");
}

#[test]
#[ignore = "started by another test"]
fn with_another_environment() {
    let facts = choose(DriverChoice::Any, Probe::SYSTEM).unwrap().facts();
    println!("chosen {}", facts.name);
}

#[test]
fn a_lack_of_descriptors_is_a_recorded_failure() {
    let said = restricted("without_descriptors");
    assert!(said.contains("checked epoll"), "{said}");
}

#[test]
#[ignore = "restricts its process; started by another test"]
fn without_descriptors() {
    // It never accepts: the kernel completes its connections, so only the client needs descriptors.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let target = listener.local_addr().expect("it is bound");
    let mut drivers: Vec<Box<dyn Driver>> = vec![Box::new(EpollDriver::new("a test").unwrap())];
    match UringDriver::new("a test") {
        Ok(uring) => drivers.push(Box::new(uring)),
        Err(failure) => println!("io_uring is left out: {failure}"),
    }
    let limit = rustix::process::Rlimit {
        current: Some(32),
        maximum: Some(32),
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("a lower limit");
    for mut driver in drivers {
        let request = RequestSpec {
            target: 0,
            head: b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            body: Arc::from([]),
            timeout: DurNs::from_ms(200),
            connect_timeout: None,
            idle_timeout: None,
        };
        let spec = CellSpec {
            requests: vec![request; 64],
            load: LoadSpec::Open {
                offsets: vec![OffsetNs(0); 64],
                cap: None,
            },
            targets: vec![target.into()],
            connections: ConnectionPolicy::Fresh,
            drain: DurNs::from_s(5),
            limits: Limits::default(),
            spin: DurNs::ZERO,
            receive: ReceiveMode::Reap,
        };
        let mut session = Session::new(Arc::new(spec));
        driver
            .run_cell(&mut session, &mut NullSink, &RunControl::default())
            .expect("what fails on a socket is no failure of the driver");
        let (mut refused, mut timed_out) = (0, 0);
        for exchange in session.exchanges() {
            match (exchange.terminal, exchange.errno) {
                (Some(Terminal::ClientFault), libc::EMFILE) => refused += 1,
                (Some(Terminal::RequestTimeout), 0) => timed_out += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(refused >= 32 && timed_out >= 8, "{refused} and {timed_out}");
        println!("checked {}", driver.facts().name);
    }
}
