//! The ring itself: set up with what the kernel has, submitted to, waited for.
#![allow(
    unsafe_code,
    reason = "entries handed to the kernel point to memory that it will use"
)]

use std::io;

use assize_core::DriverFailure;
use assize_units::{DurNs, MonoNs};
use io_uring::types::{self, SubmitArgs};
use io_uring::{
    Builder, CompletionQueue, EnterFlags, IoUring, SubmissionQueue, Submitter, cqueue, opcode,
    squeue,
};

use crate::clock;

const SQ_ENTRIES: u32 = 256;

/// The kernel keeps what does not fit and says so; that is a failure here. A turn of the loop takes
/// all completions, and the kernel posts a few dozen for each socket at most.
const CQ_ENTRIES: u32 = 16 * 1024;

/// Completions that are never reached: the wait ends by time.
const MANY: usize = CQ_ENTRIES as usize / 2;

/// What an optional setup flag is called, and how it is asked for.
type Flag = (&'static str, fn(&mut Builder));

/// The optional flags, in the order in which they are given up: the youngest first.
const FLAGS: [Flag; 6] = [
    ("NO_SQARRAY", |builder| {
        builder.setup_no_sqarray();
    }),
    ("DEFER_TASKRUN", |builder| {
        builder.setup_defer_taskrun();
    }),
    ("SINGLE_ISSUER", |builder| {
        builder.setup_single_issuer();
    }),
    ("TASKRUN_FLAG", |builder| {
        builder.setup_taskrun_flag();
    }),
    ("SUBMIT_ALL", |builder| {
        builder.setup_submit_all();
    }),
    ("CLAMP", |builder| {
        builder.setup_clamp();
    }),
];

/// A ring, and what it can do.
pub(super) struct Ring {
    io: IoUring,
    abilities: Abilities,
}

/// What the waits may use.
#[derive(Clone, Copy, Debug)]
struct Abilities {
    /// Completions appear only where this task enters the ring.
    deferred: bool,
    /// The kernel shows that such completions wait.
    taskrun_flag: bool,
    /// Deadlines of waits may be absolute.
    absolute: bool,
    /// Waits are not accounted as waits for a disk, which would raise the frequency.
    no_iowait: bool,
    /// A wait may let completions gather.
    min_wait: bool,
}

impl Ring {
    /// Sets a ring up; with it what was obtained and what was given up.
    pub fn open() -> Result<(Ring, Vec<(String, String)>), DriverFailure> {
        let (io, given_up) = set_up()?;
        let obtained = FLAGS.iter().skip(given_up.len()).map(|flag| flag.0);
        let mut obtained: Vec<&str> = obtained.collect();
        let deferred = obtained.contains(&"DEFER_TASKRUN");
        let mut abilities = Abilities {
            deferred,
            taskrun_flag: obtained.contains(&"TASKRUN_FLAG"),
            absolute: false,
            no_iowait: io.params().is_feature_no_iowait(),
            min_wait: io.params().is_feature_min_timeout(),
        };
        if !deferred {
            obtained.push("COOP_TASKRUN");
        }
        if !io.params().is_feature_ext_arg() {
            return Err(missing("io_uring_enter with a timeout", libc::EINVAL));
        }
        let mut ring = Ring { io, abilities };
        abilities.absolute = ring.has_absolute_waits()?;
        ring.abilities.absolute = abilities.absolute;
        ring.check_multishot()?;
        let registered = ring.queues().registered;
        let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let features = [
            ("setup flags", obtained.join(" ")),
            ("setup flags given up", given_up.join(" ")),
            ("sq entries", ring.io.params().sq_entries().to_string()),
            ("cq entries", ring.io.params().cq_entries().to_string()),
            ("registered ring fd", yes_no(registered)),
            ("absolute wait deadlines", yes_no(abilities.absolute)),
            ("waits without iowait", yes_no(abilities.no_iowait)),
            ("minimum wait (gathering)", yes_no(abilities.min_wait)),
        ];
        let features = features.map(|(name, value)| (name.to_owned(), value));
        Ok((ring, features.to_vec()))
    }

    /// Both queues and what submits them. The ring's descriptor is registered for as long as they
    /// are held, where the kernel can.
    pub fn queues(&mut self) -> Queues<'_> {
        let (mut submitter, sq, cq) = self.io.split();
        let registered = submitter.register_ring_fd().is_ok();
        Queues {
            submitter,
            sq,
            cq,
            abilities: self.abilities,
            registered,
        }
    }

    /// Whether a wait takes an absolute deadline, by waiting for the past.
    fn has_absolute_waits(&self) -> Result<bool, DriverFailure> {
        let past = types::Timespec::new().sec(0).nsec(1);
        let args = SubmitArgs::new().timespec(&past);
        let outcome =
            self.io
                .submitter()
                .submit_with_args_and_flags(1, &args, EnterFlags::ABS_TIMER);
        match outcome.map_err(errno_of) {
            Ok(_) | Err(libc::ETIME) => Ok(true),
            Err(libc::EINVAL) => Ok(false),
            Err(errno) => Err(missing("io_uring_enter", errno)),
        }
    }

    /// Multishot receives need Linux 6.0: an older kernel says EINVAL before it looks at the
    /// descriptor.
    fn check_multishot(&mut self) -> Result<(), DriverFailure> {
        let entry = opcode::RecvMulti::new(types::Fd(-1), 0).build();
        let mut queues = self.queues();
        // SAFETY: the entry names no memory and no descriptor.
        unsafe { queues.push(&entry) }?;
        let now = clock::now();
        queues.sleep(now, now.after(DurNs::from_s(1)), DurNs::ZERO)?;
        queues.look();
        let result = queues.next().map_or(0, |cqe| cqe.result());
        if result == -libc::EBADF {
            return Ok(());
        }
        Err(missing("multishot receive", -result))
    }
}

fn set_up() -> Result<(IoUring, Vec<&'static str>), DriverFailure> {
    for dropped in 0..=FLAGS.len() {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(CQ_ENTRIES);
        for (_, ask) in &FLAGS[dropped..] {
            ask(&mut builder);
        }
        if dropped > 1 {
            // TASKRUN_FLAG wants one of the two.
            builder.setup_coop_taskrun();
        }
        match builder.build(SQ_ENTRIES).map_err(errno_of) {
            Ok(io) => {
                let given_up = FLAGS[..dropped].iter().map(|flag| flag.0);
                return Ok((io, given_up.collect()));
            }
            Err(libc::EINVAL) => {}
            Err(errno) => return Err(missing("io_uring_setup", errno)),
        }
    }
    Err(missing("io_uring_setup", libc::EINVAL))
}

/// The queues of a ring while a cell runs.
pub(super) struct Queues<'a> {
    pub submitter: Submitter<'a>,
    sq: SubmissionQueue<'a>,
    cq: CompletionQueue<'a>,
    abilities: Abilities,
    registered: bool,
}

impl Drop for Queues<'_> {
    fn drop(&mut self) {
        if self.registered {
            let _ = self.submitter.unregister_ring_fd();
        }
    }
}

impl Queues<'_> {
    /// Puts an entry in the queue; a full queue is submitted first.
    ///
    /// # Safety
    ///
    /// What the entry points to stays valid until its last completion has been taken.
    pub unsafe fn push(&mut self, entry: &squeue::Entry) -> Result<(), DriverFailure> {
        // SAFETY: passed on to the caller.
        if unsafe { self.sq.push(entry) }.is_ok() {
            return Ok(());
        }
        self.submit()?;
        // SAFETY: as above.
        unsafe { self.sq.push(entry) }.map_err(|_| missing("io_uring submission", libc::EBUSY))
    }

    /// Submits what is queued, and lets completions that wait for it be posted.
    pub fn submit(&mut self) -> Result<(), DriverFailure> {
        self.sq.sync();
        let answer = self.submitter.submit();
        self.sq.sync();
        entered(answer)
    }

    /// Shows the kernel what was taken, and looks for new completions; whether there are some.
    pub fn look(&mut self) -> bool {
        self.cq.sync();
        !self.cq.is_empty()
    }

    /// The next completion that [`Queues::look`] found.
    pub fn next(&mut self) -> Option<cqueue::Entry> {
        self.cq.next()
    }

    /// Whether completions were more than the queue holds.
    pub fn overflowed(&self) -> bool {
        self.sq.cq_overflow()
    }

    /// Submits and sleeps until a completion is there or `until` is reached. With a `gather`,
    /// completions may come for so long before they are shown.
    pub fn sleep(
        &mut self,
        now: MonoNs,
        until: MonoNs,
        gather: DurNs,
    ) -> Result<(), DriverFailure> {
        let gather = gather.min(until.since(now));
        let gather_us = u32::try_from(gather.0 / 1000).unwrap_or(u32::MAX);
        if gather_us > 0 && self.abilities.min_wait {
            return self.enter(now, until, MANY, gather_us);
        }
        if gather_us > 0 {
            self.enter(now, now.after(gather), MANY, 0)?;
            if self.look() {
                return Ok(());
            }
        }
        self.enter(clock::now(), until, 1, 0)
    }

    fn enter(
        &mut self,
        now: MonoNs,
        until: MonoNs,
        want: usize,
        min_wait_us: u32,
    ) -> Result<(), DriverFailure> {
        let mut flags = EnterFlags::empty();
        if self.abilities.no_iowait {
            flags |= EnterFlags::NO_IOWAIT;
        }
        let ns = if self.abilities.absolute {
            flags |= EnterFlags::ABS_TIMER;
            until.0
        } else {
            until.since(now).0
        };
        let time = clock::timespec(ns);
        let time = types::Timespec::new()
            .sec(time.tv_sec as u64)
            .nsec(time.tv_nsec as u32);
        let args = SubmitArgs::new().timespec(&time).min_wait_usec(min_wait_us);
        // The kernel counts what it was not shown to be taken, and would not sleep.
        self.cq.sync();
        self.sq.sync();
        let answer = self
            .submitter
            .submit_with_args_and_flags(want, &args, flags);
        self.sq.sync();
        entered(answer)
    }

    /// Looks again and again until a completion is there or `until` is reached.
    pub fn spin(&mut self, until: MonoNs) -> Result<(), DriverFailure> {
        loop {
            if !self.sq.is_empty() || self.sq.taskrun() {
                self.submit()?;
            } else if self.abilities.deferred && !self.abilities.taskrun_flag {
                self.run_deferred()?;
            }
            if self.look() || clock::now() >= until {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    /// Without TASKRUN_FLAG nothing shows that completions wait, and a submission of nothing does
    /// not post them.
    fn run_deferred(&mut self) -> Result<(), DriverFailure> {
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: nothing is submitted, and there is no argument.
        entered(unsafe { self.submitter.enter::<libc::sigset_t>(0, 0, flags, None) })
    }
}

/// Time reached, a signal, or completions to be taken first are no failures.
fn entered(answer: io::Result<usize>) -> Result<(), DriverFailure> {
    match answer.map_err(errno_of) {
        Ok(_) | Err(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
        Err(errno) => Err(missing("io_uring_enter", errno)),
    }
}

pub(super) fn errno_of(error: io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

pub(super) fn missing(operation: &str, errno: i32) -> DriverFailure {
    crate::failure(operation, rustix::io::Errno::from_raw_os_error(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring that sleeps although nothing but a taken completion is there, and one that sees what
    /// comes while it only spins.
    #[test]
    fn sleeps_to_the_end_and_spins_to_the_completion() {
        let Ok((mut ring, _)) = Ring::open() else {
            eprintln!("skipped: io_uring is not to be had here");
            return;
        };
        let mut queues = ring.queues();
        for gather in [DurNs::ZERO, DurNs::from_ms(1)] {
            // SAFETY: the entry names neither memory nor a descriptor.
            unsafe { queues.push(&opcode::Nop::new().build().user_data(7)) }.unwrap();
            queues.spin(MonoNs(u64::MAX)).unwrap();
            assert_eq!(queues.next().map(|cqe| cqe.user_data()), Some(7));

            let now = clock::now();
            let until = now.after(DurNs::from_ms(5));
            queues.sleep(now, until, gather).unwrap();
            assert!(clock::now() >= until, "woken by what was taken before");
            assert!(!queues.look());
        }
    }
}
