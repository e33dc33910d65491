//! The driver that waits with epoll.
//!
//! Sockets are registered once, edge triggered, for both directions. A receive shorter than the
//! buffer has emptied the socket, so the usual event costs one `recv` and no second call that would
//! only say EAGAIN; what comes later raises a new edge.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use assize_core::{
    ConnId, Driver, DriverFacts, DriverFailure, Outgoing, Output, ReceiveMode, RunControl, Session,
    Sink, SocketOp, Stamp,
};
use assize_units::{DurNs, MonoNs};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags, connect, recv, sockopt};
use rustix::time::Timespec;

use crate::clock;
use crate::failure;
use crate::lead::Lead;
use crate::socket;
use crate::upkeep::{Upkeep, next_wake};

/// Bytes that one receive may bring.
const RECEIVE_BUFFER: usize = 64 * 1024;

/// Events that one wait may bring.
const EVENTS: usize = 256;

/// Full buffers that are read from one socket before the others get their turn.
const READS_IN_A_ROW: u32 = 16;

const NO_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Drives sessions with non-blocking sockets and `epoll_pwait2`.
pub struct EpollDriver {
    epoll: OwnedFd,
    facts: DriverFacts,
    lead: Lead,
    slots: Vec<Option<Socket>>,
    /// Connections that were cut short by [`READS_IN_A_ROW`].
    unread: Vec<ConnId>,
    events: Vec<Event>,
    buffer: Box<[u8]>,
}

/// One open socket.
#[derive(Debug)]
struct Socket {
    fd: OwnedFd,
    conn: ConnId,
    connecting: bool,
    sending: Option<Sending>,
    /// A receive told the end or a failure: nothing more is to come.
    ended: bool,
    /// A send found the connection broken. The system tells of a reset once: a receive after that
    /// sees an end.
    reset: bool,
}

/// A send that the kernel has not accepted wholly.
#[derive(Debug)]
struct Sending {
    data: Outgoing,
    done: usize,
}

impl EpollDriver {
    /// A driver, if the kernel has epoll with deadlines in nanoseconds (Linux 5.11).
    pub fn new(why: &str) -> Result<EpollDriver, DriverFailure> {
        let epoll =
            epoll::create(CreateFlags::CLOEXEC).map_err(|errno| failure("epoll_create1", errno))?;
        let mut events = Vec::with_capacity(EVENTS);
        epoll::wait(&epoll, spare_capacity(&mut events), Some(&NO_WAIT))
            .map_err(|errno| failure("epoll_pwait2", errno))?;
        let features = [
            ("clock", "CLOCK_MONOTONIC"),
            (
                "wait",
                "epoll_pwait2 to the deadline less the spin, edge triggered",
            ),
            (
                "receive",
                "recv; recvmsg with SO_TIMESTAMPING where the plan asks for kernel stamps",
            ),
            ("send", "sendmsg of head and body"),
        ];
        let features = features.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(EpollDriver {
            epoll,
            facts: DriverFacts {
                name: "epoll".to_owned(),
                why: why.to_owned(),
                features: features.to_vec(),
            },
            lead: Lead::default(),
            slots: Vec::new(),
            unread: Vec::new(),
            events,
            buffer: vec![0; RECEIVE_BUFFER].into(),
        })
    }
}

impl Driver for EpollDriver {
    fn facts(&self) -> DriverFacts {
        self.facts.clone()
    }

    fn now(&self) -> MonoNs {
        clock::now()
    }

    fn sleep_until(&mut self, until: MonoNs) {
        clock::sleep_until(until);
    }

    fn run_cell(
        &mut self,
        session: &mut Session,
        sink: &mut dyn Sink,
        control: &RunControl,
    ) -> Result<(), DriverFailure> {
        let (spin, receive) = (session.spec().spin, session.spec().receive);
        let mut cell = Cell {
            driver: self,
            session,
            sink,
            stamps: matches!(receive, ReceiveMode::Kernel { .. }),
        };
        let ended = cell.run(spin, receive, control);
        // After a failure of the driver itself sockets may be left; they end with their cell.
        self.slots.clear();
        self.unread.clear();
        ended
    }
}

/// One running cell.
struct Cell<'a> {
    driver: &'a mut EpollDriver,
    session: &'a mut Session,
    sink: &'a mut dyn Sink,
    stamps: bool,
}

impl Cell<'_> {
    fn run(
        &mut self,
        spin: DurNs,
        receive: ReceiveMode,
        control: &RunControl,
    ) -> Result<(), DriverFailure> {
        let mut upkeep = Upkeep::begin(receive, self.sink);
        self.session.start(clock::now(), self.sink);
        loop {
            self.perform();
            if self.session.is_done() {
                upkeep.end(self.driver.lead, self.session, self.sink, control);
                return Ok(());
            }
            let now = clock::now();
            upkeep.turn(now, self.session, self.sink, control);
            let due = self.session.poll_timeout();
            let (until, spin) = next_wake(now, due, spin);
            if let ReceiveMode::Kernel { gather } = receive {
                let asleep = self.driver.lead.asleep_until(until, spin);
                self.gather(now, asleep, gather);
            }
            self.wait(until, spin)?;
            self.handle_events(until);
            let now = clock::now();
            if due.is_some_and(|due| due <= now) {
                self.session.handle_timeout(now, self.sink);
            }
        }
    }

    /// Waits for events, at most to `until`: asleep to `until` less `spin` and what wakes are late by
    /// here, then looking again and again.
    fn wait(&mut self, until: MonoNs, spin: DurNs) -> Result<(), DriverFailure> {
        let mut now = clock::now();
        loop {
            let asleep = self.driver.lead.asleep_until(until, spin);
            let idle = self.driver.unread.is_empty() && asleep > now;
            let timeout = if idle {
                clock::timespec(asleep.since(now).0)
            } else {
                NO_WAIT
            };
            self.poll_events(&timeout)?;
            now = clock::now();
            let quiet = self.driver.events.is_empty() && self.driver.unread.is_empty();
            if idle && quiet && now >= asleep {
                self.driver.lead.woke(asleep, now);
            }
            if now >= until || !quiet {
                return Ok(());
            }
        }
    }

    /// After a wait that brought events, lets more of them come before the next.
    fn gather(&mut self, now: MonoNs, deadline: MonoNs, gather: DurNs) {
        let quiet = self.driver.events.is_empty() || !self.driver.unread.is_empty();
        if !quiet && self.session.may_gather() {
            clock::sleep_until(deadline.min(now.after(gather)));
        }
    }

    fn poll_events(&mut self, timeout: &Timespec) -> Result<(), DriverFailure> {
        self.driver.events.clear();
        epoll_wait(&self.driver.epoll, &mut self.driver.events, timeout)
    }

    fn handle_events(&mut self, due: MonoNs) {
        for conn in std::mem::take(&mut self.driver.unread) {
            self.receive(conn, true, due);
        }
        for place in 0..self.driver.events.len() {
            let Event { flags, data } = self.driver.events[place];
            self.handle_event(conn_of(data), flags, due);
        }
    }

    fn handle_event(&mut self, conn: ConnId, flags: EventFlags, due: MonoNs) {
        let over = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let Some(socket) = self.driver.socket(conn) else {
            return;
        };
        if socket.connecting && flags.intersects(EventFlags::OUT | over) {
            self.end_connecting(conn);
            self.perform();
        } else if socket.sending.is_some() && flags.intersects(EventFlags::OUT | over) {
            self.continue_sending(conn);
        }
        if flags.intersects(EventFlags::IN | over) {
            self.receive(conn, flags.intersects(over), due);
        }
    }

    fn end_connecting(&mut self, conn: ConnId) {
        let Some(socket) = self.driver.socket(conn) else {
            return;
        };
        socket.connecting = false;
        let outcome = sockopt::socket_error(&socket.fd).and_then(|outcome| outcome);
        socket.ended = outcome.is_err();
        self.connected(conn, outcome);
    }

    fn connected(&mut self, conn: ConnId, outcome: Result<(), Errno>) {
        let now = clock::now();
        match outcome {
            Ok(()) => self.session.handle_connected(now, conn, self.sink),
            Err(errno) => self.failed(now, conn, SocketOp::Connect, errno),
        }
    }

    fn failed(&mut self, now: MonoNs, conn: ConnId, op: SocketOp, errno: Errno) {
        self.session
            .handle_failed(now, conn, op, errno.raw_os_error(), self.sink);
    }

    /// Receives until the socket is empty, and polls outputs where there are some or one is due.
    fn receive(&mut self, conn: ConnId, to_the_end: bool, due: MonoNs) {
        for _ in 0..READS_IN_A_ROW {
            let stamps = self.stamps;
            let Some((socket, buffer)) = self.driver.reader(conn) else {
                return;
            };
            let answer = if stamps {
                socket::receive_stamped(socket.fd.as_fd(), buffer)
            } else {
                recv(&socket.fd, &mut *buffer, RecvFlags::DONTWAIT).map(|(count, _)| (count, 0))
            };
            let now = clock::now();
            let mut more = to_the_end;
            let answer = match answer {
                Ok((0, _)) if socket.reset => Err(Errno::CONNRESET),
                answer => answer,
            };
            match answer {
                Ok((0, kernel_ns)) => {
                    socket.ended = true;
                    let at = Stamp {
                        mono: now,
                        kernel_ns,
                    };
                    self.session.handle_eof(at, conn, self.sink);
                }
                Ok((count, kernel_ns)) => {
                    more |= count == buffer.len();
                    let at = Stamp {
                        mono: now,
                        kernel_ns,
                    };
                    self.session
                        .handle_received(at, conn, &buffer[..count], self.sink);
                }
                Err(Errno::INTR) => more = true,
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    socket.ended = true;
                    self.failed(now, conn, SocketOp::Receive, errno);
                }
            }
            if self.session.has_output() || due <= now {
                self.perform();
            }
            if !more {
                return;
            }
        }
        self.driver.unread.push(conn);
    }

    /// Performs all outputs, each with a reading of the clock of its own.
    fn perform(&mut self) {
        while let Some(output) = self.session.poll_output(clock::now(), self.sink) {
            match output {
                Output::Connect { conn, addr } => self.connect(conn, addr),
                Output::Send { conn, data } => self.send(conn, data),
                Output::Close { conn, farewell } => self.close(conn, farewell.as_deref()),
            }
        }
    }

    fn connect(&mut self, conn: ConnId, addr: SocketAddr) {
        match self.driver.open(conn, addr, self.stamps) {
            Ok(Connecting::Standing) => self.connected(conn, Ok(())),
            Ok(Connecting::UnderWay) => {}
            Err(errno) => self.connected(conn, Err(errno)),
        }
    }

    fn send(&mut self, conn: ConnId, data: Outgoing) {
        let Some(socket) = self.driver.socket(conn) else {
            return;
        };
        socket.sending = Some(Sending { data, done: 0 });
        self.session
            .handle_send_started(clock::now(), conn, self.sink);
        self.continue_sending(conn);
    }

    /// Sends until the kernel takes no more.
    fn continue_sending(&mut self, conn: ConnId) {
        loop {
            let Some(socket) = self.driver.socket(conn) else {
                return;
            };
            let Some(Sending { data, done }) = &mut socket.sending else {
                return;
            };
            let (front, rest) = data.parts(self.session.spec());
            let whole = front.len() + rest.len();
            let answer = socket::send_from(socket.fd.as_fd(), front, rest, *done);
            let now = clock::now();
            match answer {
                Ok(count) if *done + count == whole => {
                    socket.sending = None;
                    self.session.handle_sent(now, conn, self.sink);
                }
                Ok(count) => {
                    *done += count;
                    let done = *done as u64;
                    self.session.handle_partly_sent(now, conn, done, self.sink);
                }
                Err(Errno::AGAIN) => return,
                Err(errno) => {
                    socket.sending = None;
                    socket.reset = matches!(errno, Errno::CONNRESET | Errno::PIPE);
                    self.failed(now, conn, SocketOp::Send, errno);
                }
            }
        }
    }

    fn close(&mut self, conn: ConnId, farewell: Option<&[u8]>) {
        if let (Some(socket), Some(words)) = (self.driver.socket(conn), farewell) {
            socket::offer(socket.fd.as_fd(), words);
        }
        self.driver.forget(conn);
        self.session.handle_closed(clock::now(), conn, self.sink);
    }
}

/// How far a connection came at once.
enum Connecting {
    Standing,
    UnderWay,
}

impl EpollDriver {
    fn open(&mut self, conn: ConnId, addr: SocketAddr, stamps: bool) -> Result<Connecting, Errno> {
        let fd = socket::open(addr, SocketFlags::NONBLOCK, stamps)?;
        let outcome = match connect(&fd, &addr) {
            Ok(()) => Connecting::Standing,
            Err(Errno::INPROGRESS | Errno::INTR) => Connecting::UnderWay,
            Err(errno) => return Err(errno),
        };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &fd, data_of(conn), flags)?;
        let place = conn.slot as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        self.slots[place] = Some(Socket {
            fd,
            conn,
            connecting: matches!(outcome, Connecting::UnderWay),
            sending: None,
            ended: false,
            reset: false,
        });
        Ok(outcome)
    }

    fn socket(&mut self, conn: ConnId) -> Option<&mut Socket> {
        let socket = self.slots.get_mut(conn.slot as usize)?.as_mut()?;
        (socket.conn == conn).then_some(socket)
    }

    /// A socket that is connected and has not ended, with the buffer to receive into.
    fn reader(&mut self, conn: ConnId) -> Option<(&mut Socket, &mut [u8])> {
        let socket = self.slots.get_mut(conn.slot as usize)?.as_mut()?;
        let reads = socket.conn == conn && !socket.connecting && !socket.ended;
        reads.then_some((socket, &mut self.buffer))
    }

    fn forget(&mut self, conn: ConnId) {
        if self.socket(conn).is_some() {
            self.slots[conn.slot as usize] = None;
        }
    }
}

fn epoll_wait(
    epoll: &OwnedFd,
    events: &mut Vec<Event>,
    timeout: &Timespec,
) -> Result<(), DriverFailure> {
    match epoll::wait(epoll, spare_capacity(events), Some(timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(failure("epoll_pwait2", errno)),
    }
}

fn data_of(conn: ConnId) -> EventData {
    EventData::new_u64(u64::from(conn.serial) << 32 | u64::from(conn.slot))
}

fn conn_of(data: EventData) -> ConnId {
    ConnId {
        slot: data.u64() as u32,
        serial: (data.u64() >> 32) as u32,
    }
}
