//! A property that does not hold: the fuzzer must find out, or the set-up can find nothing.

use assize_core::protocol::sse::Scanner;

/// Claims, wrongly, that no stream holds a `[DONE]` event.
pub fn check(data: &[u8]) {
    let mut scanner = Scanner::new();
    let mut input = data;
    while let Some(event) = scanner.poll(&mut input) {
        assert!(!event.done, "the canary sings");
    }
}
