//! A conventional asynchronous io_uring client: a task for each stream, a read for each event.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio_uring::net::TcpStream;

use crate::measure::Stamps;
use crate::peer::{STREAM, now_ns};

pub fn streams(addr: SocketAddr, starts: &[u64], stamps: &mut Stamps) {
    let kept = Rc::new(RefCell::new(std::mem::take(stamps)));
    tokio_uring::start(async {
        let origin = now_ns();
        let mut tasks = Vec::new();
        for after in starts.iter().copied() {
            let kept = Rc::clone(&kept);
            tasks.push(tokio_uring::spawn(async move {
                // Its runtime has a timer of whole milliseconds; the start is not what is measured.
                let left = (origin + after).saturating_sub(now_ns());
                tokio::time::sleep(std::time::Duration::from_nanos(left)).await;
                let stream = TcpStream::connect(addr).await.expect("the peer listens");
                stream.set_nodelay(true).expect("a socket option");
                let (sent, _) = stream.write_all(STREAM).await;
                sent.expect("a short request");
                let mut buffer = vec![0; 4096];
                loop {
                    let (count, back) = stream.read(buffer).await;
                    let now = now_ns();
                    buffer = back;
                    match count {
                        Ok(count) if count > 0 => kept.borrow_mut().keep(now, 0, &buffer[..count]),
                        _ => return,
                    }
                }
            }));
        }
        for task in tasks {
            task.await.expect("no task panics");
        }
    });
    *stamps = kept.take();
}
