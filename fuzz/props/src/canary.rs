//! A property that does not hold: the fuzzer must find out, or the set-up can find nothing.

use assize_core::protocol::sse::Scanner;

/// Claims, wrongly, that no stream holds two events.
pub fn check(data: &[u8]) {
    let mut scanner = Scanner::new();
    let mut input = data;
    let mut events = 0;
    while scanner.poll(&mut input).is_some() {
        events += 1;
        assert!(events < 2, "the canary sings");
    }
}
