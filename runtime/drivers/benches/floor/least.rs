//! The least clients: they connect, send, read and stamp, and do nothing else. No parsing, no
//! deadlines but their starts, no records.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use io_uring::types::{BufRingEntry, Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::measure::Stamps;
use crate::peer::{SHORT, STREAM, now_ns};

fn start(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("the peer listens");
    stream.set_nodelay(true).expect("a socket option");
    send(&stream, STREAM, SendFlags::empty()).expect("a short request");
    stream
}

/// With epoll: one `recv` for each readiness.
pub fn epoll_streams(addr: SocketAddr, starts: &[u64], stamps: &mut Stamps) {
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    let mut streams = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 65536];
    let (mut next, mut open, origin) = (0, 0, now_ns());
    loop {
        while next < starts.len() && origin + starts[next] <= now_ns() {
            let stream = start(addr);
            epoll::add(&epoll, &stream, EventData::new_u64(next as u64), flags).expect("epoll");
            streams.push(Some(stream));
            next += 1;
            open += 1;
        }
        if open == 0 && next == starts.len() {
            return;
        }
        let wait = starts.get(next).map(|at| {
            let left = (origin + at).saturating_sub(now_ns());
            rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: left as i64,
            }
        });
        events.clear();
        let _ = epoll::wait(&epoll, spare_capacity(&mut events), wait.as_ref());
        for event in &events {
            let place = event.data.u64() as usize;
            let flags = event.flags;
            let over = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
            while let Some(stream) = &streams[place] {
                let (count, _) = recv(stream, &mut *buffer, RecvFlags::DONTWAIT).unwrap_or((1, 0));
                stamps.keep(now_ns(), 0, &buffer[..count]);
                if count == 0 {
                    streams[place] = None;
                    open -= 1;
                }
                if !over {
                    break;
                }
            }
        }
    }
}

const BUFFERS: u16 = 1024;
const SIZE: usize = 4096;

/// The ring of the least client: multishot receives into provided buffers.
pub struct Ring {
    io: IoUring,
    memory: *mut u8,
    layout: std::alloc::Layout,
    tail: u16,
}

impl Ring {
    pub fn new() -> Ring {
        let io = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(4096)
            .build(256)
            .expect("io_uring");
        let bytes = usize::from(BUFFERS) * (size_of::<BufRingEntry>() + SIZE);
        let layout = std::alloc::Layout::from_size_align(bytes, 4096).expect("a small layout");
        // SAFETY: the layout is not empty; the memory is freed after the ring is gone.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        // SAFETY: the memory begins with the entries, is page-aligned and outlives the ring.
        unsafe {
            io.submitter()
                .register_buf_ring_with_flags(memory as u64, BUFFERS, 0, 0)
        }
        .expect("provided buffers");
        let mut ring = Ring {
            io,
            memory,
            layout,
            tail: 0,
        };
        (0..BUFFERS).for_each(|buffer| ring.give_back(buffer));
        ring
    }

    fn place(&self, buffer: u16) -> *mut u8 {
        let entries = usize::from(BUFFERS) * size_of::<BufRingEntry>();
        // SAFETY: the kernel names buffers that it was given, and they are part of the memory.
        unsafe { self.memory.add(entries + usize::from(buffer) * SIZE) }
    }

    fn give_back(&mut self, buffer: u16) {
        let entries = self.memory.cast::<BufRingEntry>();
        // SAFETY: the entry is one of the ring; the tail is its reserved field.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.tail % BUFFERS));
            entry.set_addr(self.place(buffer) as u64);
            entry.set_len(SIZE as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(entries).cast_mut();
            std::sync::atomic::AtomicU16::from_ptr(tail)
                .store(self.tail, std::sync::atomic::Ordering::Release);
        }
    }

    fn arm(&mut self, stream: &TcpStream, place: usize) {
        let entry = opcode::RecvMulti::new(Fd(stream.as_raw_fd()), 0)
            .build()
            .user_data(place as u64);
        // SAFETY: the buffers outlive the ring, and the stream is closed after its last completion.
        unsafe { self.io.submission().push(&entry) }.expect("a free entry");
        self.io.submit().expect("io_uring");
    }
}

/// With io_uring: multishot receives, one enter for each batch.
/// Completions gather for `gather_us` where that is more than 0.
pub fn uring_streams(
    ring: &mut Ring,
    addr: SocketAddr,
    starts: &[u64],
    gather_us: u32,
    stamps: &mut Stamps,
) {
    let mut streams = Vec::new();
    let mut batch = Vec::with_capacity(256);
    let (mut next, mut open, origin) = (0, 0, now_ns());
    loop {
        while next < starts.len() && origin + starts[next] <= now_ns() {
            let stream = start(addr);
            ring.arm(&stream, next);
            streams.push(Some(stream));
            next += 1;
            open += 1;
        }
        if open == 0 && next == starts.len() {
            return;
        }
        let until = starts.get(next).map_or(u64::MAX >> 1, |at| origin + at);
        let time = Timespec::new()
            .sec(until / 1_000_000_000)
            .nsec((until % 1_000_000_000) as u32);
        let args = SubmitArgs::new().timespec(&time).min_wait_usec(gather_us);
        let flags = EnterFlags::ABS_TIMER;
        let want = if gather_us > 0 { 1024 } else { 1 };
        let _ = ring
            .io
            .submitter()
            .submit_with_args_and_flags(want, &args, flags);
        let now = now_ns();
        batch.extend(ring.io.completion());
        for cqe in batch.drain(..) {
            let cqe: cqueue::Entry = cqe;
            if let Some(buffer) = cqueue::buffer_select(cqe.flags()) {
                let len = usize::try_from(cqe.result()).unwrap_or(0);
                // SAFETY: the completion names the buffer, which is given back after this.
                let bytes = unsafe { std::slice::from_raw_parts(ring.place(buffer), len) };
                stamps.keep(now, 0, bytes);
                ring.give_back(buffer);
            }
            let place = cqe.user_data() as usize;
            if cqueue::more(cqe.flags()) {
                continue;
            }
            if cqe.result() == -libc::ENOBUFS {
                ring.arm(streams[place].as_ref().expect("an open stream"), place);
                continue;
            }
            streams[place] = None;
            open -= 1;
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let _ = self.io.submitter().unregister_buf_ring(0);
        // SAFETY: allocated with this layout; the ring has let it go and nothing is pending.
        unsafe { std::alloc::dealloc(self.memory, self.layout) };
    }
}

/// `requests` trivial requests over `clients` kept connections, with epoll.
pub fn epoll_requests(addr: SocketAddr, clients: usize, requests: u64) {
    let epoll = epoll::create(CreateFlags::CLOEXEC).expect("epoll");
    let streams: Vec<TcpStream> = (0..clients)
        .map(|place| {
            let stream = TcpStream::connect(addr).expect("the peer listens");
            stream.set_nodelay(true).expect("a socket option");
            let flags = EventFlags::IN | EventFlags::ET;
            epoll::add(&epoll, &stream, EventData::new_u64(place as u64), flags).expect("epoll");
            send(&stream, SHORT, SendFlags::empty()).expect("a short request");
            stream
        })
        .collect();
    let mut events = Vec::with_capacity(256);
    let mut buffer = vec![0; 65536];
    let (mut sent, mut ended) = (clients as u64, 0);
    while ended < requests {
        events.clear();
        let _ = epoll::wait(&epoll, spare_capacity(&mut events), None);
        for event in &events {
            let stream = &streams[event.data.u64() as usize];
            let _ = recv(stream, &mut *buffer, RecvFlags::DONTWAIT).expect("an answer");
            std::hint::black_box(now_ns());
            ended += 1;
            if sent < requests {
                std::hint::black_box(now_ns());
                send(stream, SHORT, SendFlags::empty()).expect("a short request");
                sent += 1;
            }
        }
    }
}
