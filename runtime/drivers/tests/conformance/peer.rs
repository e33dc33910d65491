//! A scripted HTTP peer on a loopback port: what it does depends on its script alone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// One step of a script.
#[derive(Clone, Debug)]
pub enum Act {
    /// Reads one request: its head and as much body as its content-length says.
    ReadRequest,
    /// Reads the head of a request and leaves the body.
    ReadHead,
    /// Writes these bytes in one call.
    Write(Vec<u8>),
    /// Writes these bytes one by one, each in a call of its own.
    WriteBytewise(Vec<u8>),
    /// Lets time pass.
    Pause(Duration),
    /// Reads until the client ends the connection.
    AwaitClose,
    /// Ends its own side and reads until the client ends the connection.
    End,
    /// Resets the connection.
    Reset,
}

/// The script of the n-th connection.
pub type Script = Arc<dyn Fn(usize) -> Vec<Act> + Send + Sync>;

/// Serves until the process ends; the address.
pub fn serve(script: Script) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let addr = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for (nth, stream) in listener.incoming().enumerate() {
            let (stream, acts) = (stream.expect("accepts"), script(nth));
            std::thread::spawn(move || play(stream, acts));
        }
    });
    addr
}

/// An address where nobody listens.
pub fn refusing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    listener.local_addr().expect("it is bound")
}

/// Plays a script; a client that goes away ends it.
fn play(mut stream: TcpStream, acts: Vec<Act>) {
    stream.set_nodelay(true).expect("TCP");
    let mut unread = Vec::new();
    for act in acts {
        let done = match act {
            Act::ReadRequest => read_request(&mut stream, &mut unread, true),
            Act::ReadHead => read_request(&mut stream, &mut unread, false),
            Act::Write(bytes) => stream.write_all(&bytes),
            Act::WriteBytewise(bytes) => bytes.iter().try_for_each(|byte| {
                std::thread::sleep(Duration::from_micros(50));
                stream.write_all(&[*byte])
            }),
            Act::Pause(time) => {
                std::thread::sleep(time);
                Ok(())
            }
            Act::AwaitClose => await_close(&mut stream),
            Act::End => {
                let _ = stream.shutdown(std::net::Shutdown::Write);
                await_close(&mut stream)
            }
            Act::Reset => {
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO))
                    .expect("a socket option");
                return;
            }
        };
        if done.is_err() {
            return;
        }
    }
}

fn await_close(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while stream.read(&mut buffer)? > 0 {}
    Ok(())
}

fn read_request(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
    with_body: bool,
) -> std::io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        if let Some(end) = request_end(unread, with_body).filter(|end| *end <= unread.len()) {
            unread.drain(..end);
            return Ok(());
        }
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        unread.extend_from_slice(&buffer[..count]);
    }
}

fn request_end(bytes: &[u8], with_body: bool) -> Option<usize> {
    let blank = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..blank]).expect("an ASCII head");
    let length = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(0, |(_, value)| value.parse::<usize>().expect("a number"));
    Some(blank + 4 + if with_body { length } else { 0 })
}
