//! The system calls on one TCP socket that both drivers make.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, ipproto, sendmsg,
    socket_with, sockopt,
};

mod stamped;

use stamped::stamp_receives;

pub(crate) use stamped::{CONTROL_LEN, Stamping, kernel_stamp, receive_stamped};

/// A new TCP socket for `addr`, without Nagle's delay.
pub(crate) fn open(addr: SocketAddr, flags: SocketFlags, stamps: bool) -> Result<OwnedFd, Errno> {
    let family = match addr {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    if stamps {
        stamp_receives(socket.as_fd())?;
    }
    Ok(socket)
}

/// Sends what follows the first `done` bytes of head and body; the number of bytes accepted.
pub(crate) fn send_from(
    socket: BorrowedFd<'_>,
    head: &[u8],
    body: &[u8],
    done: usize,
) -> Result<usize, Errno> {
    let (head, body) = rest(head, body, done);
    let slices = [IoSlice::new(head), IoSlice::new(body)];
    let slices = if head.is_empty() {
        &slices[1..]
    } else {
        &slices[..]
    };
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    loop {
        match sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags) {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// Offers bytes to a socket that is about to be closed: it takes them at once or never.
pub(crate) fn offer(socket: BorrowedFd<'_>, words: &[u8]) {
    let _ = send_from(socket, words, &[], 0);
}

/// What follows the first `done` bytes of head and body.
pub(crate) fn rest<'a>(head: &'a [u8], body: &'a [u8], done: usize) -> (&'a [u8], &'a [u8]) {
    let of_head = done.min(head.len());
    let of_body = (done - of_head).min(body.len());
    (&head[of_head..], &body[of_body..])
}

#[cfg(test)]
mod tests {
    use super::rest;

    #[test]
    fn the_rest_continues_where_it_stopped() {
        let (head, body) = (&b"head"[..], &b"body!"[..]);
        let whole: Vec<u8> = [head, body].concat();
        for done in 0..=whole.len() {
            let (left, right) = rest(head, body, done);
            assert_eq!([left, right].concat(), whole[done..]);
        }
    }
}
