//! A TLS server of each test, and the authority that vouches for it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The credential that every client shows.
pub const KEY: &str = "a-key-that-reaches-no-file";

/// A stream of two tokens; the server repeats the credential that it was sent.
pub fn events() -> String {
    format!(
        ": you said {KEY}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"text\":\"hi\",\"finish_reason\":null}}]}}\n\n\
         data: {{\"choices\":[{{\"index\":0,\"text\":\" you\",\"finish_reason\":\"stop\"}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3}}}}\n\n\
         data: [DONE]\n\n"
    )
}

/// How the server's answer ends.
#[derive(Clone, Copy)]
pub enum Ends {
    /// By its last chunk; the connection stays.
    Chunked,
    /// By `close_notify`.
    Notified,
    /// By the end of the transport alone.
    Cut,
    /// By a record that nobody encrypted, in the middle.
    Forged,
}

pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub fn named(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    pub fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    /// Serves `localhost` with a valid certificate of this authority.
    pub fn serve(&self, ends: Ends) -> Served {
        self.serve_as("localhost", (2020, 2090), ends)
    }

    /// Serves with a certificate for `name` that is valid from one year to another, until the test's
    /// process ends.
    pub fn serve_as(&self, name: &str, years: (i32, i32), ends: Ends) -> Served {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, partings) = channel();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, config, tell) = (socket.unwrap(), config.clone(), tell.clone());
                std::thread::spawn(move || {
                    let parting = answer_all(socket, config, ends);
                    // A test that asks nothing of partings has dropped its end.
                    let _ = tell.send(parting.map_err(|error| error.to_string()));
                });
            }
        });
        Served { address, partings }
    }
}

/// A server of one test.
pub struct Served {
    pub address: SocketAddr,
    /// How each connection ended, as the server heard it: with `close_notify`, or an error.
    pub partings: Receiver<Result<(), String>>,
}

fn answer_all(socket: TcpStream, config: Arc<ServerConfig>, ends: Ends) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, socket);
    let events = events();
    while let Some(line) = read_request(&mut stream)? {
        if line == "GET /v1/models HTTP/1.1" {
            let models = r#"{"object":"list","data":[{"id":"asked","object":"model"}]}"#;
            let length = models.len();
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{models}"
            )?;
            stream.flush()?;
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        match ends {
            Ends::Chunked => {
                write!(stream, "{head}transfer-encoding: chunked\r\n\r\n")?;
                for piece in events.split_inclusive("\n\n") {
                    write!(stream, "{:x}\r\n{piece}\r\n", piece.len())?;
                    stream.flush()?;
                }
                write!(stream, "0\r\n\r\n")?;
                stream.flush()?;
            }
            Ends::Notified | Ends::Cut => {
                write!(stream, "{head}connection: close\r\n\r\n{events}")?;
                if matches!(ends, Ends::Notified) {
                    stream.conn.send_close_notify();
                }
                stream.flush()?;
                return Ok(());
            }
            Ends::Forged => {
                let first = events.split_inclusive("\n\n").take(2).collect::<String>();
                write!(stream, "{head}connection: close\r\n\r\n{first}")?;
                stream.flush()?;
                // The rest in a record that nobody encrypted.
                let rest = &events.as_bytes()[first.len()..];
                stream.sock.write_all(&[23, 3, 3])?;
                stream.sock.write_all(&(rest.len() as u16).to_be_bytes())?;
                stream.sock.write_all(rest)?;
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads one request whole and gives its first line; none where none comes.
fn read_request(stream: &mut impl Read) -> std::io::Result<Option<String>> {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Ok(None);
        }
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        assert!(
            head.contains(&format!("authorization: Bearer {KEY}")),
            "{head}"
        );
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse::<usize>().unwrap());
        if body.len() >= length {
            return Ok(head.lines().next().map(str::to_owned));
        }
    }
}
