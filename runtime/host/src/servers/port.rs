//! Whether the address of a server is free.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use assize_codes::E0906;

use super::WorldFailure;

/// How long one attempt to connect may take before a port counts as silent.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// Refuses to go on where something listens already: it would answer in the server's stead.
pub(super) fn check_free(address: SocketAddr) -> Result<(), WorldFailure> {
    if !is_taken(&address) {
        return Ok(());
    }
    Err(WorldFailure {
        code: E0906,
        operation: "reserve".to_owned(),
        subject: address.to_string(),
        message: "something else listens there already".to_owned(),
        errno: 0,
    })
}

fn is_taken(address: &SocketAddr) -> bool {
    if TcpStream::connect_timeout(address, CONNECT_WITHIN).is_ok() {
        return true;
    }
    // A listener whose queue is full, or a socket that is bound and does not listen yet, takes no
    // connection but holds the port. Other errors (an address of another host, a privileged port)
    // say nothing about who listens.
    matches!(TcpListener::bind(address), Err(error) if error.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_with_a_listener_is_taken_and_a_released_one_is_free() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let failure = check_free(address).unwrap_err();
        assert_eq!(failure.code, E0906);
        drop(listener);
        assert_eq!(check_free(address), Ok(()));
    }
}
