//! The same scripted peers for every driver: the same evidence, up to times.
#![allow(
    clippy::disallowed_methods,
    reason = "the peers are real threads that let real time pass; no assertion is about time"
)]

mod cases;
mod observed;
mod peer;

use assize_core::Driver;
use assize_drivers::{EpollDriver, UringDriver};

/// Every driver that is to be had here.
pub fn drivers() -> Vec<Box<dyn Driver>> {
    let mut drivers: Vec<Box<dyn Driver>> =
        vec![Box::new(EpollDriver::new("a test").expect("epoll"))];
    match UringDriver::new("a test") {
        Ok(uring) => drivers.push(Box::new(uring)),
        Err(failure) => eprintln!("io_uring is left out: {failure}"),
    }
    drivers
}
