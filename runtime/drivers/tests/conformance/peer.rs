//! Scripted peers where a driver can reach them, and what they heard.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use assize_sim::http::{Served, Stop, serve_stamped};
use assize_sim::{ConnId, EngineOutput, Peer, Script, ScriptPeer, VirtualNet, WriteStamp};
use assize_units::{DurNs, MonoNs};

/// A peer that stands somewhere.
pub trait Standing {
    fn addr(&self) -> SocketAddr;

    /// Waits until so many connections have come and all of them have ended: what each brought,
    /// sorted.
    fn heard(&mut self, connections: usize) -> Vec<Heard>;

    /// Ends it; its writes with their stamps.
    fn stop(self: Box<Self>) -> Vec<WriteStamp>;
}

/// What one connection brought.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Heard {
    pub bytes: Vec<u8>,
    /// The peer's clock before the receive that brought the first byte.
    pub first: Option<MonoNs>,
}

/// A test does not hang for ever: no assertion is about this time.
const HANG_GUARD: Duration = Duration::from_mins(1);

/// A peer on a loopback port, in a thread of its own.
pub struct LoopbackPeer {
    addr: SocketAddr,
    book: Arc<Book>,
    stop: Arc<Stop>,
    server: Option<JoinHandle<Served>>,
}

impl LoopbackPeer {
    pub fn start(ip: IpAddr, scripts: Vec<Script>) -> LoopbackPeer {
        let listener = TcpListener::bind((ip, 0)).expect("a loopback port");
        let addr = listener.local_addr().expect("it is bound");
        let (watched, book) = Watched::new(scripts);
        let stop = Arc::new(Stop::new().expect("an eventfd"));
        let until = Arc::clone(&stop);
        let server = std::thread::spawn(move || {
            serve_stamped(listener, watched, &until).expect("the peer itself does not fail")
        });
        LoopbackPeer {
            addr,
            book,
            stop,
            server: Some(server),
        }
    }

    fn end(&mut self) -> Option<Served> {
        let server = self.server.take()?;
        self.stop.stop().expect("an eventfd");
        server.join().ok()
    }
}

impl Standing for LoopbackPeer {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn heard(&mut self, connections: usize) -> Vec<Heard> {
        let book = &self.book;
        let pages = book.pages.lock().expect("no peer panicked");
        let waits = |pages: &mut Pages| pages.ended.len() < connections || !pages.open.is_empty();
        let (pages, timeout) = book
            .changed
            .wait_timeout_while(pages, HANG_GUARD, waits)
            .expect("no peer panicked");
        assert!(
            !timeout.timed_out(),
            "{} of {connections} connections ended",
            pages.ended.len()
        );
        sorted(&pages)
    }

    fn stop(mut self: Box<Self>) -> Vec<WriteStamp> {
        self.end().expect("the peer did not panic").stamps
    }
}

impl Drop for LoopbackPeer {
    fn drop(&mut self) {
        self.end();
    }
}

/// A peer in a virtual network.
pub struct VirtualPeer {
    net: VirtualNet,
    addr: SocketAddr,
    book: Arc<Book>,
}

impl VirtualPeer {
    pub fn start(net: &VirtualNet, addr: SocketAddr, scripts: Vec<Script>) -> VirtualPeer {
        let (watched, book) = Watched::new(scripts);
        net.keep_stamps();
        net.start_peer(addr, Box::new(watched));
        VirtualPeer {
            net: net.clone(),
            addr,
            book,
        }
    }
}

impl Standing for VirtualPeer {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn heard(&mut self, connections: usize) -> Vec<Heard> {
        self.net.advance_to(self.net.now().after(DurNs::from_s(1)));
        let pages = self.book.pages.lock().expect("no peer panicked");
        assert_eq!(pages.ended.len(), connections, "connections ended");
        sorted(&pages)
    }

    fn stop(self: Box<Self>) -> Vec<WriteStamp> {
        self.net.stop(self.addr);
        let stamps = self.net.take_stamps().into_iter();
        stamps.map(|(_, stamp)| stamp).collect()
    }
}

fn sorted(pages: &Pages) -> Vec<Heard> {
    let mut heard = pages.ended.clone();
    heard.sort();
    heard
}

/// An address where nobody listens.
pub fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    listener.local_addr().expect("it is bound")
}

/// A scripted peer that keeps what it hears.
struct Watched {
    peer: ScriptPeer,
    book: Arc<Book>,
}

#[derive(Default)]
struct Book {
    pages: Mutex<Pages>,
    changed: Condvar,
}

#[derive(Default)]
struct Pages {
    open: HashMap<ConnId, Heard>,
    ended: Vec<Heard>,
}

impl Watched {
    fn new(scripts: Vec<Script>) -> (Watched, Arc<Book>) {
        let book = Arc::new(Book::default());
        let watched = Watched {
            peer: ScriptPeer::new(scripts),
            book: Arc::clone(&book),
        };
        (watched, book)
    }

    fn note(&self, write: impl FnOnce(&mut Pages)) {
        write(
            &mut self
                .book
                .pages
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        self.book.changed.notify_all();
    }
}

impl Pages {
    fn end(&mut self, conn: ConnId) {
        self.ended.extend(self.open.remove(&conn));
    }
}

impl Peer for Watched {
    fn handle_open(&mut self, now: MonoNs, conn: ConnId) {
        self.note(|pages| {
            pages.open.insert(conn, Heard::default());
        });
        self.peer.handle_open(now, conn);
    }

    fn handle_received(&mut self, now: MonoNs, conn: ConnId, bytes: &[u8]) {
        self.note(|pages| {
            if let Some(heard) = pages.open.get_mut(&conn) {
                heard.first.get_or_insert(now);
                heard.bytes.extend_from_slice(bytes);
            }
        });
        self.peer.handle_received(now, conn, bytes);
    }

    fn handle_closed(&mut self, now: MonoNs, conn: ConnId) {
        self.note(|pages| pages.end(conn));
        self.peer.handle_closed(now, conn);
    }

    fn handle_timeout(&mut self, now: MonoNs) {
        self.peer.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<MonoNs> {
        self.peer.poll_timeout()
    }

    fn poll_output(&mut self) -> Option<EngineOutput> {
        let output = self.peer.poll_output();
        if let Some(EngineOutput::Close { conn, .. }) = &output {
            // What comes after the peer's own end is heard by nobody.
            self.note(|pages| pages.end(*conn));
        }
        output
    }
}
