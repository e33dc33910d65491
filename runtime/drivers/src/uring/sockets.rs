//! The sockets of a cell, and what of them the kernel still works on.
#![allow(
    unsafe_code,
    reason = "entries handed to the kernel point to memory that it will use"
)]

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use assize_core::{CellSpec, ConnId, DriverFailure, Outgoing};
use io_uring::types::{CancelBuilder, Fd};
use io_uring::{opcode, squeue};
use rustix::net::addr::SocketAddrArg;

use super::buffers::{Buffers, GROUP};
use super::ring::Queues;
use crate::socket::{self, CONTROL_LEN};

/// An operation of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Connect,
    Receive,
    Send,
    Cancel,
}

/// One open socket.
#[derive(Debug)]
pub(super) struct Socket {
    pub fd: OwnedFd,
    pub conn: ConnId,
    /// Operations whose last completion has not been taken.
    pub pending: u32,
    /// The session asked for its end.
    pub closing: bool,
    pub sending: Option<Sending>,
    /// A send found the connection broken. The system tells of a reset once: a receive after that
    /// sees an end. Where a part was sent the ring swallows that error, and the next says EPIPE.
    pub reset: bool,
    message: Option<Box<Message>>,
}

/// A send that the kernel has not accepted wholly.
#[derive(Debug)]
pub(super) struct Sending {
    pub data: Outgoing,
    pub done: usize,
}

/// The rest of a send, as the kernel is shown it.
#[derive(Debug)]
struct Message {
    head: libc::msghdr,
    slices: [libc::iovec; 2],
}

/// Everything that the kernel may read or write while an operation is pending.
#[derive(Debug)]
pub(super) struct Memory {
    pub buffers: Buffers,
    slots: Vec<Option<Socket>>,
    /// How multishot receives with kernel stamps lay their buffers out.
    layout: Box<libc::msghdr>,
    /// The cell whose bytes are being sent.
    spec: Option<Arc<CellSpec>>,
    pending: usize,
}

impl Memory {
    pub fn new(buffers: Buffers) -> Memory {
        // SAFETY: all zeroes is a valid `msghdr`: null pointers with lengths of 0.
        let mut layout: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        layout.msg_controllen = CONTROL_LEN as _;
        Memory {
            buffers,
            slots: Vec::new(),
            layout,
            spec: None,
            pending: 0,
        }
    }

    /// Holds a cell's bytes, from now until another one is held.
    pub fn hold(&mut self, spec: &Arc<CellSpec>) {
        assert_eq!(self.pending, 0, "the cell before has been reaped");
        self.spec = Some(Arc::clone(spec));
    }

    /// Whether the kernel may still use any of this.
    pub fn in_use(&self) -> bool {
        self.pending > 0
    }

    pub fn layout(&self) -> &libc::msghdr {
        &self.layout
    }

    pub fn insert(&mut self, conn: ConnId, fd: OwnedFd) {
        let place = conn.slot as usize;
        if self.slots.len() <= place {
            self.slots.resize_with(place + 1, || None);
        }
        assert!(
            self.slots[place].is_none(),
            "a slot is used again only after its end"
        );
        self.slots[place] = Some(Socket {
            fd,
            conn,
            pending: 0,
            closing: false,
            sending: None,
            reset: false,
            message: None,
        });
    }

    pub fn get(&mut self, conn: ConnId) -> Option<&mut Socket> {
        self.slot(conn.slot).filter(|socket| socket.conn == conn)
    }

    pub fn slot(&mut self, slot: u32) -> Option<&mut Socket> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Closes a socket of which nothing is pending.
    pub fn remove(&mut self, conn: ConnId) {
        if let Some(socket) = self.get(conn) {
            assert_eq!(
                socket.pending, 0,
                "a descriptor is closed after its last completion"
            );
            self.slots[conn.slot as usize] = None;
        }
    }

    /// An operation's last completion was taken.
    pub fn settle(&mut self, slot: u32) {
        if let Some(socket) = self.slot(slot) {
            socket.pending -= 1;
            self.pending -= 1;
        }
    }

    /// Begins to connect, at once.
    pub fn connect(
        &mut self,
        queues: &mut Queues<'_>,
        conn: ConnId,
        addr: SocketAddr,
    ) -> Result<(), DriverFailure> {
        let Some(fd) = self.get(conn).map(|socket| Fd(socket.fd.as_raw_fd())) else {
            return Ok(());
        };
        let submitted = {
            // SAFETY: the closure only passes the address on to the kernel, which copies it while
            // the entry is submitted, and that is done before the closure returns.
            unsafe {
                addr.with_sockaddr(|addr, len| {
                    let entry = opcode::Connect::new(fd, addr.cast(), len).build();
                    queues.push(&tagged(entry, Op::Connect, conn))?;
                    queues.submit()
                })
            }
        };
        submitted?;
        self.count(conn);
        Ok(())
    }

    /// Arms a receive that lasts until the connection ends.
    pub fn receive(
        &mut self,
        queues: &mut Queues<'_>,
        conn: ConnId,
        stamps: bool,
    ) -> Result<(), DriverFailure> {
        let Some(fd) = self.get(conn).map(|socket| Fd(socket.fd.as_raw_fd())) else {
            return Ok(());
        };
        let entry = if stamps {
            opcode::RecvMsgMulti::new(fd, &raw const *self.layout, GROUP).build()
        } else {
            opcode::RecvMulti::new(fd, GROUP).build()
        };
        // SAFETY: the layout and the buffers are part of this memory, which lives until nothing is
        // pending any more.
        unsafe { queues.push(&tagged(entry, Op::Receive, conn)) }?;
        self.count(conn);
        Ok(())
    }

    /// Lets the kernel send the rest of a send as the peer takes it.
    pub fn send_rest(
        &mut self,
        queues: &mut Queues<'_>,
        conn: ConnId,
        sending: Sending,
    ) -> Result<(), DriverFailure> {
        let Some(spec) = self.spec.clone() else {
            return Ok(());
        };
        let Some(socket) = self.get(conn) else {
            return Ok(());
        };
        let sending = socket.sending.insert(sending);
        let (front, rest) = sending.data.parts(&spec);
        let (front, rest) = socket::rest(front, rest, sending.done);
        let message = socket.message.get_or_insert_with(|| {
            // SAFETY: all zeroes is valid for both: null pointers with lengths of 0.
            Box::new(unsafe { std::mem::zeroed() })
        });
        message.slices = [front, rest].map(|bytes| libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        });
        message.head.msg_iov = message.slices.as_mut_ptr();
        message.head.msg_iovlen = message.slices.len();
        let entry = opcode::SendMsg::new(Fd(socket.fd.as_raw_fd()), &raw const message.head)
            .flags((libc::MSG_WAITALL | libc::MSG_NOSIGNAL) as u32)
            .build();
        // SAFETY: the message is boxed in its slot, which stays until nothing of it is pending. The
        // bytes belong to the held cell, whose requests are never changed, or to the records in
        // `sending`, which is taken when this send's completion is.
        unsafe { queues.push(&tagged(entry, Op::Send, conn)) }?;
        self.count(conn);
        Ok(())
    }

    /// Stops whatever is pending on a socket.
    pub fn cancel(&mut self, queues: &mut Queues<'_>, conn: ConnId) -> Result<(), DriverFailure> {
        let Some(fd) = self.get(conn).map(|socket| Fd(socket.fd.as_raw_fd())) else {
            return Ok(());
        };
        let entry = opcode::AsyncCancel2::new(CancelBuilder::fd(fd).all()).build();
        // SAFETY: the entry names a descriptor that is open and no memory.
        unsafe { queues.push(&tagged(entry, Op::Cancel, conn)) }?;
        self.count(conn);
        Ok(())
    }

    fn count(&mut self, conn: ConnId) {
        if let Some(socket) = self.get(conn) {
            socket.pending += 1;
            self.pending += 1;
        }
    }
}

/// Where a completion belongs. The slot is enough: it is not used again while one is to come.
pub(super) fn target_of(user_data: u64) -> (Op, u32) {
    let op = match user_data >> 32 {
        0 => Op::Connect,
        1 => Op::Receive,
        2 => Op::Send,
        _ => Op::Cancel,
    };
    (op, user_data as u32)
}

fn tagged(entry: squeue::Entry, op: Op, conn: ConnId) -> squeue::Entry {
    entry.user_data((op as u64) << 32 | u64::from(conn.slot))
}
