//! The buffers that the kernel takes from when bytes come: one mapping, one provided buffer ring.
#![allow(unsafe_code, reason = "memory shared with the kernel")]

use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use assize_core::DriverFailure;
use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::ring::{errno_of, missing};

/// Bytes of each.
pub(super) const SIZE: usize = 4096;

/// The group under which receives name these buffers.
pub(super) const GROUP: u16 = 0;

/// The mapping: the ring's entries, then the buffers. At least page-aligned.
#[derive(Debug)]
pub(super) struct Buffers {
    base: NonNull<c_void>,
    /// A power of two.
    count: u16,
    tail: u16,
}

impl Buffers {
    /// Maps `count` buffers, touched in advance, and registers them with a ring.
    pub fn register(submitter: &Submitter<'_>, count: u16) -> Result<Buffers, DriverFailure> {
        if !count.is_power_of_two() {
            return Err(missing("a ring of provided buffers", libc::EINVAL));
        }
        let (protection, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::POPULATE,
        );
        // SAFETY: a new anonymous mapping at a place of the kernel's choice touches nothing else.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), all_bytes(count), protection, flags) }
            .map_err(|errno| crate::failure("mmap of the receive buffers", errno))?;
        let base = NonNull::new(base).ok_or_else(|| missing("mmap", libc::ENOMEM))?;
        let mut buffers = Buffers {
            base,
            count,
            tail: 0,
        };
        // SAFETY: the mapping begins with `count` entries, is page-aligned, and lives until it is
        // dropped, which the owner does only when the ring is gone.
        unsafe { submitter.register_buf_ring_with_flags(base.as_ptr() as u64, count, GROUP, 0) }
            .map_err(|error| missing("a ring of provided buffers", errno_of(error)))?;
        for buffer in 0..count {
            buffers.give_back(buffer);
        }
        Ok(buffers)
    }

    /// The first `len` bytes of a buffer.
    ///
    /// # Safety
    ///
    /// A completion named the buffer, and it has not been given back since.
    pub unsafe fn bytes(&self, buffer: u16, len: usize) -> &[u8] {
        let len = len.min(SIZE);
        // SAFETY: `place` is inside the mapping with SIZE bytes behind it, all of them initialised
        // as zeroes by the kernel; by the contract the kernel does not write there now.
        unsafe { std::slice::from_raw_parts(self.place(buffer), len) }
    }

    /// Lets the kernel use a buffer again.
    pub fn give_back(&mut self, buffer: u16) {
        let place = self.place(buffer);
        let entries = self.base.cast::<BufRingEntry>();
        // SAFETY: the index is below the count, and the kernel does not read entries at or behind the
        // tail that it was shown.
        let entry = unsafe {
            &mut *entries
                .as_ptr()
                .add(usize::from(self.tail & (self.count - 1)))
        };
        entry.set_addr(place as u64);
        entry.set_len(SIZE as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail lies in the reserved field of the first entry, is aligned, and the
        // kernel only reads it.
        let tail = unsafe {
            let tail = BufRingEntry::tail(entries.as_ptr().cast_const());
            AtomicU16::from_ptr(tail.cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }

    fn place(&self, buffer: u16) -> *const u8 {
        assert!(
            buffer < self.count,
            "the kernel names only buffers that it was given"
        );
        // SAFETY: ring and buffers are one mapping, and the buffer is one of it.
        unsafe {
            self.base
                .as_ptr()
                .cast::<u8>()
                .add(ring_bytes(self.count) + usize::from(buffer) * SIZE)
        }
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no slice of it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr(), all_bytes(self.count)) };
    }
}

fn ring_bytes(count: u16) -> usize {
    usize::from(count) * size_of::<BufRingEntry>()
}

fn all_bytes(count: u16) -> usize {
    ring_bytes(count) + usize::from(count) * SIZE
}
