//! The driver that uses io_uring.
//!
//! One ring, one task: completions are posted only while this task enters the ring, so one reading
//! of the clock behind the entry is never earlier than any bytes of the batch. Receives are armed
//! once for each connection and stay armed while it is idle: a peer's end is seen before the next
//! use. Small requests are sent by one `sendmsg`, stamped before and after; a ring would cost the
//! same system call and tell its outcome later. What the socket buffer does not take goes to the
//! ring.

mod buffers;
mod ring;
mod sockets;

use std::net::SocketAddr;
use std::os::fd::AsFd;

use assize_core::{
    ConnId, Driver, DriverFacts, DriverFailure, Entry, Outgoing, Output, ReceiveMode, RunControl,
    Session, Sink, SocketOp, Stamp,
};
use assize_units::{DurNs, MonoNs};
use io_uring::cqueue;
use io_uring::types::RecvMsgOut;
use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::clock;
use crate::lead::Lead;
use crate::socket;
use crate::upkeep::{Upkeep, next_wake};
use buffers::Buffers;
use ring::{Queues, Ring, missing};
use sockets::{Memory, Op, Sending, target_of};

/// Receive buffers. They are given back as soon as their bytes are parsed, so a batch of
/// completions is the most that is ever in use; few of them stay in the processor's cache.
const BUFFERS: u16 = 1024;

/// Completions of one batch that are handled between two looks at what is due.
const STRIDE: u32 = 8;

/// Drives sessions with one io_uring. It stays on the thread that made it.
pub struct UringDriver {
    // The order counts: the ring ends before the memory that it was shown.
    ring: Ring,
    memory: Option<Memory>,
    facts: DriverFacts,
    lead: Lead,
    broken: Option<DriverFailure>,
}

impl UringDriver {
    /// A driver, if the kernel and the sandbox permit it (Linux 6.0 or later).
    pub fn new(why: &str) -> Result<UringDriver, DriverFailure> {
        UringDriver::with_buffers(why, BUFFERS)
    }

    /// A driver with so many receive buffers of 4 KiB, a power of two. Where they run out, receives
    /// are armed again and the evidence says so.
    pub fn with_buffers(why: &str, count: u16) -> Result<UringDriver, DriverFailure> {
        let (mut ring, mut features) = Ring::open()?;
        let buffers = Buffers::register(&ring.queues().submitter, count)?;
        let more = [
            ("clock", "CLOCK_MONOTONIC".to_owned()),
            (
                "receive buffers",
                format!("{count} of {} B, provided by ring", buffers::SIZE),
            ),
            ("receive", "multishot recv; multishot recvmsg with SO_TIMESTAMPING where the plan asks for kernel stamps".to_owned()),
            ("send", "sendmsg of head and body; the ring sends what the socket buffer does not take".to_owned()),
        ];
        features.extend(more.map(|(name, value)| (name.to_owned(), value)));
        Ok(UringDriver {
            ring,
            memory: Some(Memory::new(buffers)),
            facts: DriverFacts {
                name: "io_uring".to_owned(),
                why: why.to_owned(),
                features,
            },
            lead: Lead::default(),
            broken: None,
        })
    }
}

impl Drop for UringDriver {
    fn drop(&mut self) {
        // The kernel may still use the memory after a failure or a panic: better lost than freed.
        if let Some(memory) = self.memory.take_if(|memory| memory.in_use()) {
            std::mem::forget(memory);
        }
    }
}

impl Driver for UringDriver {
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
        if let Some(failure) = &self.broken {
            return Err(failure.clone());
        }
        let Some(memory) = self.memory.as_mut().filter(|memory| !memory.in_use()) else {
            return Err(missing(
                "io_uring of a cell that was cut short",
                libc::EBUSY,
            ));
        };
        memory.hold(session.spec());
        let (spin, receive) = (session.spec().spin, session.spec().receive);
        let mut cell = Cell {
            queues: self.ring.queues(),
            memory,
            session,
            sink,
            lead: &mut self.lead,
            stamps: matches!(receive, ReceiveMode::Kernel { .. }),
        };
        let ended = cell.run(spin, receive, control);
        if let Err(failure) = &ended {
            self.broken = Some(failure.clone());
        }
        ended
    }
}

/// One running cell.
struct Cell<'a> {
    queues: Queues<'a>,
    memory: &'a mut Memory,
    session: &'a mut Session,
    sink: &'a mut dyn Sink,
    lead: &'a mut Lead,
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
            self.perform()?;
            if self.session.is_done() {
                upkeep.end(*self.lead, self.session, self.sink, control);
                return Ok(());
            }
            let now = clock::now();
            upkeep.turn(now, self.session, self.sink, control);
            let due = self.session.poll_timeout();
            let (until, spin) = next_wake(now, due, spin);
            let gather = match receive {
                ReceiveMode::Kernel { gather } if self.session.may_gather() => gather,
                _ => DurNs::ZERO,
            };
            self.wait(now, until, spin, gather)?;
            let now = clock::now();
            self.handle_completions(now, until)?;
            if due.is_some_and(|due| due <= now) {
                self.session.handle_timeout(clock::now(), self.sink);
            }
        }
    }

    /// Waits for completions, at most to `until`: asleep to `until` less `spin` and what wakes are
    /// late by here, then looking again and again.
    fn wait(
        &mut self,
        now: MonoNs,
        until: MonoNs,
        spin: DurNs,
        gather: DurNs,
    ) -> Result<(), DriverFailure> {
        let asleep = self.lead.asleep_until(until, spin);
        if asleep > now {
            self.queues.sleep(now, asleep, gather)?;
            if self.queues.look() {
                return Ok(());
            }
            let woken = clock::now();
            if woken >= asleep {
                self.lead.woke(asleep, woken);
            }
        }
        self.queues.spin(until)
    }

    /// Hands over what was reaped at `now`. Performing outputs takes time, and brings completions
    /// that were not there before: what is handed over after it is stamped anew.
    fn handle_completions(&mut self, mut now: MonoNs, due: MonoNs) -> Result<(), DriverFailure> {
        let mut handled = 0;
        while let Some(cqe) = self.queues.next() {
            self.handle_completion(now, &cqe)?;
            handled += 1;
            let look_again = handled % STRIDE == 0 && due <= clock::now();
            if self.session.has_output() || look_again {
                self.perform()?;
                // What was taken makes room: thousands of connections post more than the queue holds.
                self.queues.look();
                now = clock::now();
            }
        }
        if self.queues.overflowed() {
            return Err(missing(
                "io_uring completion queue overflow",
                libc::EOVERFLOW,
            ));
        }
        Ok(())
    }

    fn handle_completion(&mut self, now: MonoNs, cqe: &cqueue::Entry) -> Result<(), DriverFailure> {
        let (op, slot) = target_of(cqe.user_data());
        let more = cqueue::more(cqe.flags());
        if !more {
            self.memory.settle(slot);
        }
        let Some(socket) = self.memory.slot(slot) else {
            return Ok(());
        };
        let (conn, closing, pending) = (socket.conn, socket.closing, socket.pending);
        if closing {
            if let Some(buffer) = cqueue::buffer_select(cqe.flags()) {
                self.memory.buffers.give_back(buffer);
            }
            if pending == 0 {
                self.memory.remove(conn);
                self.session.handle_closed(now, conn, self.sink);
            } else if op == Op::Cancel && cqe.result() == -libc::EALREADY {
                self.memory.cancel(&mut self.queues, conn)?;
            }
            return Ok(());
        }
        match op {
            Op::Connect => self.handle_connect(now, conn, cqe.result()),
            Op::Receive => self.handle_receive(now, conn, cqe),
            Op::Send => self.handle_send(now, conn, cqe.result()),
            Op::Cancel => Ok(()),
        }
    }

    fn handle_connect(
        &mut self,
        now: MonoNs,
        conn: ConnId,
        result: i32,
    ) -> Result<(), DriverFailure> {
        if result < 0 {
            self.failed(now, conn, SocketOp::Connect, -result);
            return Ok(());
        }
        self.memory.receive(&mut self.queues, conn, self.stamps)?;
        self.session.handle_connected(now, conn, self.sink);
        Ok(())
    }

    fn handle_receive(
        &mut self,
        now: MonoNs,
        conn: ConnId,
        cqe: &cqueue::Entry,
    ) -> Result<(), DriverFailure> {
        let more = cqueue::more(cqe.flags());
        let again = match (cqe.result(), cqueue::buffer_select(cqe.flags())) {
            (result, Some(buffer)) if result > 0 => {
                let ended = self.received(now, conn, buffer, result as usize, more);
                self.memory.buffers.give_back(buffer);
                !more && !ended
            }
            (result, buffer) => {
                if let Some(buffer) = buffer {
                    self.memory.buffers.give_back(buffer);
                }
                match -result {
                    libc::ENOBUFS => {
                        self.note(now, conn, "receive: ENOBUFS, all buffers were in use");
                        true
                    }
                    0 if more => false,
                    0 => {
                        self.ended(now.into(), conn);
                        false
                    }
                    errno => {
                        self.failed(now, conn, SocketOp::Receive, errno);
                        false
                    }
                }
            }
        };
        if again {
            self.note(now, conn, "receive: armed again");
            self.memory.receive(&mut self.queues, conn, self.stamps)?;
        }
        Ok(())
    }

    /// Hands over what a buffer holds; whether it is the peer's end.
    fn received(&mut self, now: MonoNs, conn: ConnId, buffer: u16, len: usize, more: bool) -> bool {
        #[expect(unsafe_code, reason = "the buffer is shared with the kernel")]
        // SAFETY: the completion just taken named the buffer; it is given back after this.
        let bytes = unsafe { self.memory.buffers.bytes(buffer, len) };
        let message = self
            .stamps
            .then(|| RecvMsgOut::parse(bytes, self.memory.layout()));
        let (bytes, kernel_ns) = match &message {
            None => (bytes, 0),
            Some(Ok(out)) => (out.payload_data(), socket::kernel_stamp(out.control_data())),
            Some(Err(())) => (&[][..], 0),
        };
        let at = Stamp {
            mono: now,
            kernel_ns,
        };
        if !bytes.is_empty() {
            self.session.handle_received(at, conn, bytes, self.sink);
            return false;
        }
        // With a control area the end is not a result of 0 but a message without bytes.
        if !more {
            self.ended(at, conn);
        }
        true
    }

    fn ended(&mut self, at: Stamp, conn: ConnId) {
        if self.memory.get(conn).is_some_and(|socket| socket.reset) {
            self.failed(at.mono, conn, SocketOp::Receive, libc::ECONNRESET);
        } else {
            self.session.handle_eof(at, conn, self.sink);
        }
    }

    fn handle_send(&mut self, now: MonoNs, conn: ConnId, result: i32) -> Result<(), DriverFailure> {
        let Some(sending) = self
            .memory
            .get(conn)
            .and_then(|socket| socket.sending.take())
        else {
            return Ok(());
        };
        if result < 0 {
            self.send_failed(now, conn, -result);
            return Ok(());
        }
        let (front, rest) = sending.data.parts(self.session.spec());
        let done = sending.done + result as usize;
        if done == front.len() + rest.len() {
            self.session.handle_sent(now, conn, self.sink);
            return Ok(());
        }
        self.partly_sent(now, conn, done);
        let sending = Sending { done, ..sending };
        self.memory.send_rest(&mut self.queues, conn, sending)
    }

    /// Performs all outputs, each with a reading of the clock of its own.
    fn perform(&mut self) -> Result<(), DriverFailure> {
        while let Some(output) = self.session.poll_output(clock::now(), self.sink) {
            match output {
                Output::Connect { conn, addr } => self.connect(conn, addr)?,
                Output::Send { conn, data } => self.send(conn, data)?,
                Output::Close { conn, farewell } => self.close(conn, farewell.as_deref())?,
            }
        }
        Ok(())
    }

    fn connect(&mut self, conn: ConnId, addr: SocketAddr) -> Result<(), DriverFailure> {
        // A ring takes a non-blocking socket's EAGAIN for an answer, so the socket is a blocking one.
        match socket::open(addr, SocketFlags::empty(), self.stamps) {
            Ok(fd) => {
                self.memory.insert(conn, fd);
                self.memory.connect(&mut self.queues, conn, addr)
            }
            Err(errno) => {
                self.failed(clock::now(), conn, SocketOp::Connect, errno.raw_os_error());
                Ok(())
            }
        }
    }

    fn send(&mut self, conn: ConnId, data: Outgoing) -> Result<(), DriverFailure> {
        let Some(socket) = self.memory.get(conn) else {
            return Ok(());
        };
        self.session
            .handle_send_started(clock::now(), conn, self.sink);
        let (front, rest) = data.parts(self.session.spec());
        let whole = front.len() + rest.len();
        let answer = socket::send_from(socket.fd.as_fd(), front, rest, 0);
        let now = clock::now();
        let done = match answer {
            Ok(done) if done == whole => {
                self.session.handle_sent(now, conn, self.sink);
                return Ok(());
            }
            Ok(done) => {
                self.partly_sent(now, conn, done);
                done
            }
            Err(Errno::AGAIN) => 0,
            Err(errno) => {
                self.send_failed(now, conn, errno.raw_os_error());
                return Ok(());
            }
        };
        self.memory
            .send_rest(&mut self.queues, conn, Sending { data, done })
    }

    fn close(&mut self, conn: ConnId, farewell: Option<&[u8]>) -> Result<(), DriverFailure> {
        if let (Some(socket), Some(words)) = (self.memory.get(conn), farewell) {
            socket::offer(socket.fd.as_fd(), words);
        }
        if let Some(socket) = self.memory.get(conn).filter(|socket| socket.pending > 0) {
            socket.closing = true;
            return self.memory.cancel(&mut self.queues, conn);
        }
        self.memory.remove(conn);
        self.session.handle_closed(clock::now(), conn, self.sink);
        Ok(())
    }

    fn send_failed(&mut self, now: MonoNs, conn: ConnId, errno: i32) {
        if let Some(socket) = self.memory.get(conn) {
            socket.reset = matches!(errno, libc::ECONNRESET | libc::EPIPE);
        }
        self.failed(now, conn, SocketOp::Send, errno);
    }

    fn partly_sent(&mut self, now: MonoNs, conn: ConnId, done: usize) {
        self.session
            .handle_partly_sent(now, conn, done as u64, self.sink);
    }

    fn failed(&mut self, now: MonoNs, conn: ConnId, op: SocketOp, errno: i32) {
        self.session.handle_failed(now, conn, op, errno, self.sink);
    }

    fn note(&mut self, now: MonoNs, conn: ConnId, fact: &str) {
        self.sink
            .put(now.into(), Some(conn), None, Entry::Driver(fact));
    }
}
