//! The engine on a real port: bytes, order and accounting; never times.
#![cfg(target_os = "linux")]

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use assize_sim::http::{ServeError, Served, Stop, serve};
use assize_sim::{EngineConfig, Fault, FaultRule, Percent};
use assize_units::DurNs;
use support::{StopOnDrop, answers, get, post};

fn config() -> EngineConfig {
    EngineConfig {
        prefill_base: DurNs::from_us(100),
        prefill_per_token: DurNs::ZERO,
        step: DurNs::from_us(100),
        step_per_seq: DurNs::ZERO,
        ..EngineConfig::default()
    }
}

/// Runs `client` against a server and stops it.
fn with_server(config: EngineConfig, client: impl FnOnce(SocketAddr)) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = listener.local_addr().expect("an address");
    let stop = Stop::new().expect("an eventfd");
    std::thread::scope(|scope| {
        let server = scope.spawn(|| serve(listener, config, &stop));
        let stopped = StopOnDrop(&stop);
        client(addr);
        drop(stopped);
        server.join().expect("no panic").expect("an orderly end")
    })
}

/// All bytes until the server closes.
fn ask(addr: SocketAddr, bytes: &[u8]) -> Result<Vec<u8>, std::io::Error> {
    let mut stream = TcpStream::connect(addr)?;
    stream.write_all(bytes)?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received)?;
    Ok(received)
}

fn closing(bytes: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(bytes).expect("text");
    text.replacen("\r\n", "\r\nConnection: close\r\n", 1)
        .into_bytes()
}

fn stream_of(tokens: u32) -> Vec<u8> {
    let body = format!(r#"{{"prompt":"a","max_tokens":{tokens},"ignore_eos":true,"stream":true}}"#);
    post("/v1/completions", &body)
}

#[test]
fn many_connections_are_served_at_once() {
    let served = with_server(config(), |addr| {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..16)
                .map(|n| scope.spawn(move || ask(addr, &closing(stream_of(20 + n))).unwrap()))
                .collect();
            for (n, client) in clients.into_iter().enumerate() {
                let bytes = client.join().unwrap();
                let [answer] = &answers(&bytes)[..] else {
                    panic!("one answer");
                };
                assert!(answer.complete);
                assert_eq!(answer.events().len(), 20 + n);
            }
        });
    });
    assert_eq!(served.connections, 16);
}

#[test]
fn a_connection_serves_several_requests() {
    with_server(config(), |addr| {
        let mut bytes = stream_of(5);
        bytes.extend(get("/health"));
        bytes.extend(closing(stream_of(7)));
        let found = answers(&ask(addr, &bytes).unwrap());
        assert_eq!(found.len(), 3);
        assert_eq!(found[2].events().len(), 7);
    });
}

#[test]
fn a_body_of_megabytes_is_read_and_a_slow_reader_gets_every_byte() {
    let config = EngineConfig {
        max_model_len: 1 << 24,
        ..config()
    };
    with_server(config, |addr| {
        let prompt = "abcdefgh".repeat(1 << 20);
        let body = format!(
            r#"{{"prompt":"{prompt}","max_tokens":1,"ignore_eos":true,"return_token_ids":true}}"#
        );
        let mut stream = TcpStream::connect(addr).unwrap();
        let request = closing(post("/v1/completions", &body));
        stream.write_all(&request).unwrap();
        // The sockets' buffers hold less than these 8 MiB and more: the rest is the server's backlog.
        let mut received = Vec::new();
        let mut buffer = [0; 16 << 10];
        loop {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                count => received.extend_from_slice(&buffer[..count]),
            }
        }
        let [answer] = &answers(&received)[..] else {
            panic!("one answer");
        };
        assert!(answer.complete);
        assert!(received.len() > 8 << 20, "{}", received.len());
        let ids = &answer.json()["choices"][0]["prompt_token_ids"];
        assert_eq!(ids.as_array().unwrap().len(), 2 << 20);
    });
}

#[test]
fn resets_and_closes_reach_the_client() {
    let rule = |n: u64, fault| FaultRule {
        fault,
        requests: vec![n],
        every: 0,
        probability: Percent::default(),
    };
    let config = EngineConfig {
        faults: vec![
            rule(0, Fault::ResetBeforeHead),
            rule(1, Fault::CloseBeforeHead),
            rule(2, Fault::CloseMidStream { after_events: 3 }),
        ],
        ..config()
    };
    with_server(config, |addr| {
        let reset = ask(addr, &stream_of(9)).unwrap_err();
        assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);
        assert_eq!(ask(addr, &stream_of(9)).unwrap(), b"");
        let cut = ask(addr, &stream_of(9)).unwrap();
        assert!(!answers(&cut)[0].complete);
        assert_eq!(answers(&cut)[0].payloads().len(), 3);
        // An answer to a body that is not read to its end is not lost to a reset.
        let mut bytes =
            b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".to_vec();
        bytes.resize(200_000, b' ');
        assert_eq!(answers(&ask(addr, &bytes).unwrap())[0].status, 413);
    });
}

#[test]
fn what_cannot_run_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = EngineConfig {
        max_seqs: 0,
        ..config()
    };
    let refused = serve(listener, config, &Stop::new().unwrap());
    assert!(matches!(refused, Err(ServeError::Config(_))));
}
