//! Receiving with the kernel's own time: SO_TIMESTAMPING, software receive stamps.
//!
//! The stamp is CLOCK_REALTIME. Where several segments were merged before a read it is the last
//! one's, also for the bytes of the first: an upper bound, never later than the read.
#![allow(
    unsafe_code,
    reason = "rustix has neither this option nor this control message"
)]

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use assize_units::DurNs;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, getsockname, send,
    socket_with,
};

use crate::clock;

/// Room for one control message of three `timespec`s, and some.
pub(crate) const CONTROL_LEN: usize = 128;

const NS_PER_S: u64 = 1_000_000_000;

/// Keeps the kernel's stamping on for as long as it lives.
///
/// The kernel stamps packets only while some socket of the system asks for it, and turns that on
/// and off later, by its own work queue: without this, the first receives of a cell with new
/// connections would bear no stamp.
#[derive(Debug)]
pub(crate) struct Stamping {
    socket: OwnedFd,
}

impl Stamping {
    /// Turns stamping on and waits, for at most 50 ms, until a datagram to itself bears a stamp.
    /// The second value says whether one did.
    pub fn begin() -> Result<(Stamping, bool), Errno> {
        const TRIES: u32 = 50;
        let socket = socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        connect(&socket, &getsockname(&socket)?)?;
        stamp_receives(socket.as_fd())?;
        let stamping = Stamping { socket };
        for _ in 0..TRIES {
            if stamping.stamps()? {
                return Ok((stamping, true));
            }
            clock::sleep_until(clock::now().after(DurNs::from_ms(1)));
        }
        Ok((stamping, false))
    }

    fn stamps(&self) -> Result<bool, Errno> {
        let mut buffer = [0; 1];
        send(&self.socket, &buffer, SendFlags::DONTWAIT)?;
        match receive_stamped(self.socket.as_fd(), &mut buffer) {
            Ok((_, kernel_ns)) => Ok(kernel_ns > 0),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// Asks the kernel to stamp what it receives for this socket.
pub(crate) fn stamp_receives(socket: BorrowedFd<'_>) -> Result<(), Errno> {
    let value: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the pointer and the length are those of a live `c_uint`, which is what the option
    // takes; the kernel only reads it.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

/// Receives without waiting; the number of bytes and the kernel's stamp, 0 where it gave none.
pub(crate) fn receive_stamped(
    socket: BorrowedFd<'_>,
    buffer: &mut [u8],
) -> Result<(usize, u64), Errno> {
    #[repr(align(8))]
    struct Control([u8; CONTROL_LEN]);
    let mut control = Control([0; CONTROL_LEN]);
    let mut slice = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: all zeroes is a valid `msghdr`: null pointers with lengths of 0.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_LEN as _;
    // SAFETY: the message points to a buffer and a control area that are borrowed mutably here,
    // outlive the call and have the lengths that are given with them.
    let count = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
    let Ok(count) = usize::try_from(count) else {
        return Err(last_errno());
    };
    let filled = CONTROL_LEN.min(message.msg_controllen as usize);
    Ok((count, kernel_stamp(&control.0[..filled])))
}

/// The software receive stamp among control messages, as CLOCK_REALTIME in ns; 0 where there is
/// none.
pub(crate) fn kernel_stamp(mut control: &[u8]) -> u64 {
    const HEAD: usize = size_of::<libc::cmsghdr>();
    while control.len() >= HEAD {
        // SAFETY: `cmsghdr` is plain integers, and at least its size is readable; the read may be
        // unaligned.
        let head: libc::cmsghdr =
            unsafe { control.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        let len = head.cmsg_len.clamp(HEAD, control.len());
        let data = &control[HEAD..len];
        let is_stamp =
            head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SO_TIMESTAMPING;
        if is_stamp && data.len() >= size_of::<libc::timespec>() {
            // SAFETY: `timespec` is plain integers, and at least its size is readable; the read may
            // be unaligned.
            let time: libc::timespec =
                unsafe { data.as_ptr().cast::<libc::timespec>().read_unaligned() };
            return time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64;
        }
        let aligned = len.next_multiple_of(size_of::<usize>()).min(control.len());
        control = &control[aligned..];
    }
    0
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, len: usize, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(len.to_ne_bytes());
        bytes.extend(level.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes
    }

    fn time(seconds: i64, ns: i64) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        bytes[..8].copy_from_slice(&seconds.to_ne_bytes());
        bytes[8..16].copy_from_slice(&ns.to_ne_bytes());
        bytes
    }

    #[test]
    fn finds_the_stamp_behind_another_message() {
        let mut control = message(libc::SOL_SOCKET, 1, 20, &[1, 2, 3, 4, 0, 0, 0, 0]);
        control.extend(message(
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            64,
            &time(3, 7),
        ));
        assert_eq!(kernel_stamp(&control), 3_000_000_007);
    }

    #[test]
    fn nonsense_gives_no_stamp_and_ends() {
        let stamp = (libc::SOL_SOCKET, libc::SO_TIMESTAMPING);
        for len in [0, 1, 16, 20, usize::MAX] {
            let control = message(stamp.0, stamp.1, len, &[0; 4]);
            assert_eq!(kernel_stamp(&control), 0, "length {len}");
            assert_eq!(kernel_stamp(&control[..3]), 0);
        }
    }
}
