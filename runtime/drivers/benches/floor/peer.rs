//! The peer, in a process of its own: streams events at a fixed gap, each with the time at which it
//! was written, or gives a trivial answer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::{ClockId, clock_gettime};

/// What a stream brings.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub events: u32,
    pub gap: Duration,
    /// All streams bring their events at the same instants, as a server that decodes a batch does.
    pub in_step: bool,
}

impl Shape {
    fn first_due(self, now_ns: u64) -> u64 {
        let gap = self.gap.as_nanos() as u64;
        let due = now_ns + gap;
        if self.in_step {
            due.next_multiple_of(gap)
        } else {
            due
        }
    }
}

/// The request that is answered by a stream.
pub const STREAM: &[u8] = b"POST /stream HTTP/1.1\r\nhost: peer\r\ncontent-length: 0\r\n\r\n";

/// The request that is answered at once.
pub const SHORT: &[u8] = b"POST /short HTTP/1.1\r\nhost: peer\r\ncontent-length: 0\r\n\r\n";

pub const SHORT_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    transfer-encoding: chunked\r\nconnection: close\r\n\r\n";

/// Before the 16 hexadecimal digits of the time.
pub const MARK: &[u8] = b"\"t\":\"";

/// A running peer; it ends with its value.
pub struct Peer {
    child: Child,
    pub addr: SocketAddr,
}

impl Peer {
    pub fn start(shape: Shape) -> Peer {
        let binary = std::env::current_exe().expect("this binary");
        let mut child = Command::new(binary)
            .arg("--peer")
            .arg(shape.events.to_string())
            .arg(shape.gap.as_micros().to_string())
            .arg(u8::from(shape.in_step).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts again");
        let mut port = [0; 2];
        let stdout = child.stdout.as_mut().expect("piped");
        stdout.read_exact(&mut port).expect("its port");
        let addr = SocketAddr::from(([127, 0, 0, 1], u16::from_be_bytes(port)));
        Peer { child, addr }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Connection {
    stream: TcpStream,
    request: Vec<u8>,
    left: u32,
}

pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Serves until its parent closes the pipe.
pub fn serve(shape: Shape) -> ! {
    rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).expect("a thread's own");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    listener.set_nonblocking(true).expect("a socket option");
    let port = listener.local_addr().expect("it is bound").port();
    let mut stdout = std::io::stdout();
    stdout.write_all(&port.to_be_bytes()).expect("a pipe");
    stdout.flush().expect("a pipe");

    const LISTENER: u64 = u64::MAX;
    const PARENT: u64 = u64::MAX - 1;
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
    epoll::add(
        &epoll,
        &listener,
        EventData::new_u64(LISTENER),
        EventFlags::IN,
    )
    .expect("epoll");
    let stdin = std::io::stdin();
    epoll::add(&epoll, &stdin, EventData::new_u64(PARENT), EventFlags::IN).expect("epoll");
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut due: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut events = Vec::with_capacity(256);
    let gap_ns = shape.gap.as_nanos() as u64;
    loop {
        let wait = due
            .peek()
            .map(|Reverse((at, _))| Duration::from_nanos(at.saturating_sub(now_ns())));
        let wait = wait.map(|wait| wait.try_into().expect("a short time"));
        events.clear();
        let _ = epoll::wait(&epoll, spare_capacity(&mut events), wait.as_ref());
        for event in &events {
            let place = event.data.u64();
            if place == PARENT {
                std::process::exit(0);
            }
            if place == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).expect("a socket option");
                    stream.set_nodelay(true).expect("a socket option");
                    let data = EventData::new_u64(connections.len() as u64);
                    epoll::add(&epoll, &stream, data, EventFlags::IN).expect("epoll");
                    connections.push(Some(Connection {
                        stream,
                        request: Vec::new(),
                        left: 0,
                    }));
                }
                continue;
            }
            let place = place as usize;
            let gone =
                connections[place]
                    .as_mut()
                    .is_some_and(|connection| match connection.read() {
                        Asked::Stream => {
                            connection.left = shape.events;
                            due.push(Reverse((shape.first_due(now_ns()), place)));
                            connection.stream.write_all(HEAD).is_err()
                        }
                        Asked::Short => connection.stream.write_all(SHORT_ANSWER).is_err(),
                        Asked::Partial => false,
                        Asked::End => true,
                    });
            if gone {
                connections[place] = None;
            }
        }
        while let Some(Reverse((at, place))) = due.peek().copied() {
            if at > now_ns() {
                break;
            }
            due.pop();
            let Some(connection) = &mut connections[place] else {
                continue;
            };
            connection.left -= 1;
            if connection.write_event().is_err() || connection.left == 0 {
                connections[place] = None;
            } else {
                due.push(Reverse((at + gap_ns, place)));
            }
        }
    }
}

enum Asked {
    Stream,
    Short,
    Partial,
    End,
}

impl Connection {
    fn read(&mut self) -> Asked {
        let mut buffer = [0; 4096];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Asked::End,
            Ok(count) => self.request.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Asked::Partial,
            Err(_) => return Asked::End,
        }
        if !self.request.ends_with(b"\r\n\r\n") {
            return Asked::Partial;
        }
        let stream = self.request.starts_with(b"POST /stream");
        self.request.clear();
        if stream { Asked::Stream } else { Asked::Short }
    }

    fn write_event(&mut self) -> std::io::Result<()> {
        const FILL: &str = "\"object\":\"text_completion\",\"model\":\"a-model-with-a-usual-name\",\
            \"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,\"finish_reason\":null,\
            \"stop_reason\":null}],\"usage\":null";
        let time = now_ns();
        let event = format!("data: {{\"t\":\"{time:016x}\",{FILL}}}\n\n");
        let last = if self.left == 0 {
            "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
        } else {
            ""
        };
        let chunk = format!("{:x}\r\n{event}\r\n{last}", event.len());
        self.stream.write_all(chunk.as_bytes())
    }
}
