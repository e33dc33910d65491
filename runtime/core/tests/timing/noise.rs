//! Calls in an order that no driver makes: any connection, any bytes, clocks that jump both ways.

use assize_core::{ConnId, Output, Session, SocketOp};
use assize_units::{DurNs, MonoNs};

use super::world::{Call, Kept, START, What, call};

/// Makes calls as the bytes choose, then runs time out until the session ends. Panics where a
/// request ends twice, or never.
pub fn make_calls(session: &mut Session, bytes: &[u8]) {
    let mut sink = Kept::default();
    let mut now = START;
    let mut conns = vec![ConnId { slot: 0, serial: 0 }];
    let mut rest = bytes;
    let mut take = || {
        let (first, others) = rest.split_first()?;
        rest = others;
        Some(*first)
    };
    let mut made = |session: &mut Session, now, made: &Call| {
        if let Some(Output::Connect { conn, .. } | Output::Send { conn, .. }) =
            call(session, &mut sink, now, made)
        {
            conns.push(conn);
        }
        *conns.last().expect("one from the beginning")
    };
    let mut last = made(session, now, &Call::Start);
    while let (Some(kind), Some(step)) = (take(), take()) {
        now = match step {
            0..200 => now.after(DurNs(u64::from(step) * 500)),
            200..250 => now.before(DurNs(u64::from(step))),
            _ => now.after(DurNs(1 << (step - 200))),
        };
        let conn = ConnId {
            slot: last.slot.wrapping_add(u32::from(kind / 128)),
            ..last
        };
        let next = match kind % 16 {
            0..4 => Call::Poll,
            4 | 5 => Call::Connected(conn),
            6 => Call::SendStarted(conn),
            7 => Call::Sent(conn),
            8..11 => {
                let len = usize::from(take().unwrap_or(0));
                Call::Received(conn, (0..len).filter_map(|_| take()).collect())
            }
            11 => Call::Received(
                conn,
                b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(),
            ),
            12 => Call::Eof(conn),
            13 => Call::Failed(conn, SocketOp::Receive, i32::from(step)),
            14 => Call::Closed(conn),
            _ if step % 2 == 0 => Call::PartlySent(conn, u64::from(step)),
            _ => Call::Timeout,
        };
        last = made(session, now, &next);
    }
    made(session, now, &Call::Abort);
    let terminals = sink
        .puts
        .iter()
        .filter(|put| matches!(put.what, What::Terminal(..)));
    assert_eq!(terminals.count(), session.exchanges().len());
    assert!(
        session
            .exchanges()
            .iter()
            .all(|exchange| exchange.terminal.is_some())
    );
    assert!(sink.puts.iter().all(|put| put.at.mono > MonoNs(0)));
}
