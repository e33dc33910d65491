//! The same scripts for every driver: io_uring, epoll and the virtual one must leave the same
//! evidence, up to times and cuts.
//!
//! A case is a cell and the [`Script`](assize_sim::Script)s of its peers, both plain values. The
//! real drivers meet the peers on loopback ports, the virtual one in a network of its own. What is
//! compared is all that they wrote: the entries of each request and of each connection in order,
//! the claims, the received bytes, and what the peers heard.
//!
//! What a driver cannot express is not compared, and these cases say so where they stand:
//!
//! - `kernel_stamps_gathered_or_not`: no kernel stamps the receives of virtual time.
//! - `buffers_that_run_out_lose_nothing`: provided buffers are io_uring's alone.
//! - brackets of the wall clock (`Clock` entries): virtual time has one clock.
//! - `each_of_a_burst_is_stamped_as_it_is_sent`: in virtual time all of a burst has one instant.
//! - No case resets a connection that is still being made, or lets connecting time out: over
//!   sockets the system decides when it tells of that.
#![allow(
    clippy::disallowed_methods,
    reason = "the peers are threads that let real time pass; no assertion is about time"
)]

mod answers;
mod cell;
mod connections;
mod loads;
mod observed;
mod peer;
mod scale;
mod uploads;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use assize_core::Driver;
use assize_drivers::{EpollDriver, UringDriver};
use assize_sim::{Script, VirtualDriver, VirtualLink, VirtualNet};

use peer::{LoopbackPeer, Standing, VirtualPeer};

/// A driver, and where its peers stand.
pub struct Subject {
    /// It.
    pub driver: Box<dyn Driver>,
    net: Option<VirtualNet>,
}

impl Subject {
    /// A driver of sockets.
    pub fn on_loopback(driver: impl Driver + 'static) -> Subject {
        Subject {
            driver: Box::new(driver),
            net: None,
        }
    }

    fn in_virtual_time() -> Subject {
        let driver = VirtualDriver::new(VirtualLink::default());
        Subject {
            net: Some(driver.net()),
            driver: Box::new(driver),
        }
    }

    /// Its name in the evidence.
    pub fn name(&self) -> String {
        self.driver.facts().name
    }

    /// Whether its time is virtual.
    pub fn is_virtual(&self) -> bool {
        self.net.is_some()
    }

    /// Starts a peer; `place` tells the peers of one cell apart.
    pub fn serve(&self, place: u16, scripts: Vec<Script>) -> Box<dyn Standing> {
        self.serve_at(Ipv4Addr::LOCALHOST.into(), place, scripts)
    }

    /// Starts a peer at this address of the loopback interface.
    pub fn serve_at(&self, ip: IpAddr, place: u16, scripts: Vec<Script>) -> Box<dyn Standing> {
        match &self.net {
            Some(net) => Box::new(VirtualPeer::start(net, (ip, place).into(), scripts)),
            None => Box::new(LoopbackPeer::start(ip, scripts)),
        }
    }

    /// An address where nobody listens.
    pub fn refusing(&self) -> SocketAddr {
        match &self.net {
            Some(_) => (Ipv4Addr::LOCALHOST, u16::MAX).into(),
            None => peer::refusing(),
        }
    }
}

/// Every driver that is to be had here.
pub fn subjects() -> Vec<Subject> {
    let mut subjects = vec![
        Subject::in_virtual_time(),
        Subject::on_loopback(EpollDriver::new("a test").expect("epoll")),
    ];
    match UringDriver::new("a test") {
        Ok(uring) => subjects.push(Subject::on_loopback(uring)),
        Err(failure) => eprintln!("io_uring is left out: {failure}"),
    }
    subjects
}
