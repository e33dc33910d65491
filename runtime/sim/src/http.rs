//! A peer on a real port: one thread, epoll, and deadlines in nanoseconds.
//!
//! This module owns the sockets and the clock of a simulated engine or a scripted peer. Its cost is part of every
//! figure that Assize measures about itself, so it makes one wait, one clock read and one timer
//! call a round, and one write for each connection that has something to say. Deadlines are
//! absolute and wait in a timerfd, which the thread's timer slack (50 µs) does not round.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use assize_units::MonoNs;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::net::sockopt;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::engine::{ConfigError, ConnId, Engine, EngineConfig, EngineOutput};
use crate::peer::{Peer, WriteStamp};

/// Ends a [`serve`] from another thread.
#[derive(Debug)]
pub struct Stop(OwnedFd);

impl Stop {
    /// A switch that is not yet thrown.
    pub fn new() -> io::Result<Stop> {
        Ok(Stop(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    /// Ends the server: open connections are closed where they stand.
    pub fn stop(&self) -> io::Result<()> {
        rustix::io::write(&self.0, &1u64.to_ne_bytes())?;
        Ok(())
    }
}

/// What a server has done, once it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections accepted.
    pub connections: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes written.
    pub sent_bytes: u64,
    /// Each write with the clock just before it, where [`serve_stamped`] was asked for.
    pub stamps: Vec<WriteStamp>,
}

/// Why a server ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration cannot be run.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The operating system refused what the server cannot do without.
    #[error("the simulated engine's server: {0}")]
    Io(#[from] io::Error),
}

/// Serves an engine that starts now, until `stop` is thrown.
pub fn serve(
    listener: TcpListener,
    config: EngineConfig,
    stop: &Stop,
) -> Result<Served, ServeError> {
    let engine = Engine::new(config, monotonic_now())?;
    Ok(Host::new(listener, engine, stop)?.serve()?)
}

/// Serves any peer until `stop` is thrown, and stamps each write. Only bytes that the socket takes
/// at once are stamped: a backlog's later writes are the kernel's doing.
pub fn serve_stamped(listener: TcpListener, peer: impl Peer, stop: &Stop) -> io::Result<Served> {
    let mut host = Host::new(listener, peer, stop)?;
    host.stamping = true;
    host.serve()
}

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Most bytes that wait for a slow reader before it is reset.
const MAX_BACKLOG_BYTES: usize = 64 << 20;
/// Most sockets that wait for their peer's FIN after ours.
const MAX_LINGERING: usize = 256;
/// Connections accepted in one round, so that a flood of them delays no token for long.
const ACCEPTS_A_ROUND: usize = 64;

const LISTENER: u64 = 0;
const TIMER: u64 = 1;
const STOP: u64 = 2;
/// Connections are numbered from here; a number is never used twice.
const FIRST_CONN: u64 = 16;

struct Host<P> {
    peer: P,
    listener: TcpListener,
    epoll: OwnedFd,
    timer: OwnedFd,
    armed: Option<MonoNs>,
    sockets: std::collections::HashMap<u64, Socket>,
    /// Sockets in `Lingering`, oldest first.
    lingering: std::collections::VecDeque<u64>,
    accepting: bool,
    next_conn: u64,
    served: Served,
    stamping: bool,
    buffer: Vec<u8>,
}

struct Socket {
    stream: TcpStream,
    /// Bytes that the socket did not take yet, from `written` on.
    backlog: Vec<u8>,
    written: usize,
    stage: Stage,
    /// The peer wants to read nothing now.
    held: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Open,
    /// The peer has closed it; the backlog is still to be written. True for a reset.
    Closing(bool),
    /// Our FIN is sent: read on, lest unread bytes turn it into a reset.
    Lingering,
}

impl<P: Peer> Host<P> {
    fn new(listener: TcpListener, peer: P, stop: &Stop) -> io::Result<Host<P>> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        let watch = |source: std::os::fd::BorrowedFd<'_>, number, flags| {
            epoll::add(&epoll, source, epoll::EventData::new_u64(number), flags)
        };
        use std::os::fd::AsFd;
        watch(listener.as_fd(), LISTENER, epoll::EventFlags::IN)?;
        let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
        watch(timer.as_fd(), TIMER, edge)?;
        watch(stop.0.as_fd(), STOP, epoll::EventFlags::IN)?;
        Ok(Host {
            peer,
            listener,
            epoll,
            timer,
            armed: None,
            sockets: std::collections::HashMap::new(),
            lingering: std::collections::VecDeque::new(),
            accepting: true,
            next_conn: FIRST_CONN,
            served: Served::default(),
            stamping: false,
            buffer: vec![0; READ_BYTES],
        })
    }

    fn serve(mut self) -> io::Result<Served> {
        let mut events = Vec::with_capacity(256);
        loop {
            self.arm()?;
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                None,
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(why.into()),
            }
            let now = monotonic_now();
            for event in &events {
                match event.data.u64() {
                    STOP => return Ok(self.served),
                    TIMER => self.armed = None,
                    LISTENER => self.accept(now)?,
                    number => self.handle_ready(now, number, event.flags)?,
                }
            }
            self.peer.handle_timeout(now);
            self.drain_outputs(now)?;
        }
    }

    /// Sets the timer to the peer's next deadline, where that has changed.
    fn arm(&mut self) -> io::Result<()> {
        let deadline = self.peer.poll_timeout();
        if deadline == self.armed {
            return Ok(());
        }
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = Itimerspec {
            it_interval: zero,
            // All zeros would disarm; the clock has left its first nanosecond behind.
            it_value: deadline.map_or(zero, |at| timespec(MonoNs(at.0.max(1)))),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        self.armed = deadline;
        Ok(())
    }

    fn accept(&mut self, now: MonoNs) -> io::Result<()> {
        for _ in 0..ACCEPTS_A_ROUND {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(why) if is_exhausted(&why) => return self.pause_accepting(),
                // The connection died in the queue; the next may be well.
                Err(_) => continue,
            };
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let number = self.next_conn;
            self.next_conn += 1;
            let data = epoll::EventData::new_u64(number);
            epoll::add(&self.epoll, &stream, data, epoll::EventFlags::IN)?;
            let socket = Socket {
                stream,
                backlog: Vec::new(),
                written: 0,
                stage: Stage::Open,
                held: false,
            };
            self.sockets.insert(number, socket);
            self.served.connections += 1;
            self.peer.handle_open(now, ConnId(number));
        }
        Ok(())
    }

    /// Without descriptors a ready listener would spin: it waits until a socket is closed.
    fn pause_accepting(&mut self) -> io::Result<()> {
        self.accepting = false;
        epoll::delete(&self.epoll, &self.listener)?;
        Ok(())
    }

    fn resume_accepting(&mut self) -> io::Result<()> {
        if !self.accepting {
            self.accepting = true;
            let data = epoll::EventData::new_u64(LISTENER);
            epoll::add(&self.epoll, &self.listener, data, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    fn handle_ready(
        &mut self,
        now: MonoNs,
        number: u64,
        flags: epoll::EventFlags,
    ) -> io::Result<()> {
        if flags.contains(epoll::EventFlags::OUT) {
            self.write_on(now, number)?;
        }
        // A held socket tells of its end alone.
        let readable = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(readable) {
            self.read(now, number)?;
        }
        Ok(())
    }

    fn read(&mut self, now: MonoNs, number: u64) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(());
        };
        match (&socket.stream).read(&mut self.buffer) {
            Ok(0) => self.forget(now, number),
            Ok(count) => {
                self.served.received_bytes += count as u64;
                if socket.stage == Stage::Open {
                    let bytes = &self.buffer[..count];
                    self.peer.handle_received(now, ConnId(number), bytes);
                }
                Ok(())
            }
            Err(why) if is_transient(&why) => Ok(()),
            Err(_) => self.forget(now, number),
        }
    }

    fn drain_outputs(&mut self, now: MonoNs) -> io::Result<()> {
        while let Some(output) = self.peer.poll_output() {
            match output {
                EngineOutput::Send { conn, bytes } => self.send(now, conn.0, bytes)?,
                EngineOutput::Close { conn, abort } => self.close(now, conn.0, abort)?,
                EngineOutput::Reading { conn, on } => self.hold(conn.0, !on)?,
            }
        }
        Ok(())
    }

    fn hold(&mut self, number: u64, held: bool) -> io::Result<()> {
        if let Some(socket) = self.sockets.get_mut(&number) {
            socket.held = held;
        }
        self.watch(number)
    }

    /// Watches a socket for what it is good for now.
    fn watch(&self, number: u64) -> io::Result<()> {
        let Some(socket) = self.sockets.get(&number) else {
            return Ok(());
        };
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, !socket.held);
        flags.set(epoll::EventFlags::OUT, !socket.backlog.is_empty());
        let data = epoll::EventData::new_u64(number);
        epoll::modify(&self.epoll, &socket.stream, data, flags)?;
        Ok(())
    }

    fn send(&mut self, now: MonoNs, number: u64, bytes: Vec<u8>) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(());
        };
        let mut taken = 0;
        if socket.backlog.is_empty() {
            let at = self.stamping.then(monotonic_now);
            match (&socket.stream).write(&bytes) {
                Ok(count) => {
                    taken = count;
                    self.served.stamps.extend(at.map(|at| WriteStamp {
                        conn: number - FIRST_CONN,
                        at,
                        bytes: count as u64,
                    }));
                }
                Err(why) if is_transient(&why) => {}
                Err(_) => return self.forget(now, number),
            }
        }
        self.served.sent_bytes += taken as u64;
        if taken < bytes.len() {
            let unwatched = socket.backlog.is_empty();
            socket.backlog.extend_from_slice(&bytes[taken..]);
            if socket.backlog.len() - socket.written > MAX_BACKLOG_BYTES {
                reset_on_close(&socket.stream);
                return self.forget(now, number);
            }
            if unwatched {
                self.watch(number)?;
            }
        }
        self.peer.recycle(bytes);
        Ok(())
    }

    /// Writes a backlog, and ends the socket where the peer has closed it.
    fn write_on(&mut self, now: MonoNs, number: u64) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(());
        };
        while socket.written < socket.backlog.len() {
            match (&socket.stream).write(&socket.backlog[socket.written..]) {
                Ok(count) => {
                    socket.written += count;
                    self.served.sent_bytes += count as u64;
                }
                Err(why) if is_transient(&why) => return Ok(()),
                Err(_) => return self.forget(now, number),
            }
        }
        socket.backlog = Vec::new();
        socket.written = 0;
        let stage = socket.stage;
        self.watch(number)?;
        match stage {
            Stage::Closing(abort) => self.close(now, number, abort),
            Stage::Open | Stage::Lingering => Ok(()),
        }
    }

    fn close(&mut self, now: MonoNs, number: u64, abort: bool) -> io::Result<()> {
        let Some(socket) = self.sockets.get_mut(&number) else {
            return Ok(());
        };
        if !socket.backlog.is_empty() {
            socket.stage = Stage::Closing(abort);
            return Ok(());
        }
        if abort {
            reset_on_close(&socket.stream);
            return self.forget(now, number);
        }
        if socket.stream.shutdown(Shutdown::Write).is_err() {
            return self.forget(now, number);
        }
        socket.stage = Stage::Lingering;
        if std::mem::take(&mut socket.held) {
            self.watch(number)?;
        }
        self.lingering.push_back(number);
        if self.lingering.len() > MAX_LINGERING
            && let Some(oldest) = self.lingering.front().copied()
        {
            return self.forget(now, oldest);
        }
        Ok(())
    }

    /// Drops a socket, and tells the peer where it does not know.
    fn forget(&mut self, now: MonoNs, number: u64) -> io::Result<()> {
        let Some(socket) = self.sockets.remove(&number) else {
            return Ok(());
        };
        match socket.stage {
            Stage::Open => self.peer.handle_closed(now, ConnId(number)),
            Stage::Closing(_) => {}
            Stage::Lingering => self.lingering.retain(|known| *known != number),
        }
        drop(socket);
        self.resume_accepting()
    }
}

/// The drop of `stream` sends RST. Failing to say so leaves an orderly close.
fn reset_on_close(stream: &TcpStream) {
    let _ = sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
}

fn is_transient(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// No descriptor or no memory is left.
fn is_exhausted(why: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = why.raw_os_error();
    [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

fn monotonic_now() -> MonoNs {
    let now = clock_gettime(ClockId::Monotonic);
    MonoNs(now.tv_sec as u64 * assize_units::NS_PER_S + now.tv_nsec as u64)
}

fn timespec(at: MonoNs) -> Timespec {
    Timespec {
        tv_sec: (at.0 / assize_units::NS_PER_S) as i64,
        tv_nsec: (at.0 % assize_units::NS_PER_S) as i64,
    }
}
