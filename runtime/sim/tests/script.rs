//! One script, on a real port and in a virtual network: the same bytes; stamps of each write.

mod support;

use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnectionPolicy, Driver, LoadSpec, NullSink, ReceiveMode, RequestSpec, RunControl,
    Session, Terminal,
};
use assize_sim::{Act, Script, ScriptPeer, VirtualDriver, VirtualLink};
use assize_units::DurNs;

const HEAD: &[u8] = b"POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n";

#[test]
fn in_virtual_time_each_write_has_its_planned_instant() {
    let addr: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let mut driver = VirtualDriver::new(VirtualLink::default());
    let net = driver.net();
    net.keep_stamps();
    let script = Script::stream(3, 64, DurNs::from_ms(5), DurNs::from_ms(2));
    net.start_peer(addr, Box::new(ScriptPeer::new(vec![script])));
    let request = RequestSpec {
        target: 0,
        head: HEAD.to_vec(),
        body: Arc::from(&b"{}"[..]),
        timeout: DurNs::from_s(1),
        connect_timeout: None,
        idle_timeout: None,
    };
    let spec = CellSpec {
        requests: vec![request],
        load: LoadSpec::Closed { clients: 1 },
        targets: vec![addr.into()],
        connections: ConnectionPolicy::Fresh,
        drain: DurNs::from_s(1),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    };
    let mut session = Session::new(Arc::new(spec));
    driver
        .run_cell(&mut session, &mut NullSink, &RunControl::default())
        .unwrap();
    let exchange = &session.exchanges()[0];
    assert_eq!(exchange.terminal, Some(Terminal::Complete));
    // Three events and `[DONE]`.
    assert_eq!(exchange.events, 4);
    let stamps = net.take_stamps();
    let complete = exchange.sent.unwrap().after(DurNs::from_us(20));
    let offsets: Vec<u64> = stamps
        .iter()
        .map(|(_, stamp)| stamp.at.since(complete).0 / 1_000_000)
        .collect();
    assert_eq!(offsets, [0, 5, 7, 9]);
    let received = exchange.first_event.unwrap();
    assert_eq!(received.since(stamps[1].1.at), DurNs::from_us(20));
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_real_port_the_bytes_and_the_end_are_the_script_s() {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use assize_sim::http::{Stop, serve_stamped};

    let sends = |end: Act| Script {
        acts: vec![
            Act::Request,
            Act::Send(b"HTTP/1.1 200 OK\r\n".to_vec()),
            Act::At(DurNs::from_us(200)),
            Act::Send(b"content-length: 9\r\n\r\nabc".to_vec()),
            end,
        ],
        repeat: false,
    };
    let peer = ScriptPeer::new(vec![sends(Act::Close), sends(Act::Reset)]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let stop = Stop::new().unwrap();
    let served = std::thread::scope(|scope| {
        let server = scope.spawn(|| serve_stamped(listener, peer, &stop).unwrap());
        let stopped = support::StopOnDrop(&stop);
        for resets in [false, true] {
            let mut stream = TcpStream::connect(addr).unwrap();
            stream.write_all(&[HEAD, b"{}"].concat()).unwrap();
            let mut received = Vec::new();
            let end = stream.read_to_end(&mut received);
            assert_eq!(end.is_err(), resets);
            let expected = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc";
            // A reset may overtake what the client has not read.
            assert!(expected.starts_with(&received[..]));
            assert!(resets || received.len() == expected.len());
        }
        drop(stopped);
        server.join().unwrap()
    });
    let shown: Vec<(u64, u64)> = served.stamps.iter().map(|s| (s.conn, s.bytes)).collect();
    assert_eq!(shown, [(0, 17), (0, 24), (1, 17), (1, 24)]);
    let apart = served.stamps[1].at.since(served.stamps[0].at);
    // Never early: the second write's deadline counts from the request, before the first write.
    assert!(apart.0 > 0);
}
