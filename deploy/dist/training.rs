//! The training of the shipped program: requests on loopback that show the compiler which code is hot. `build.sh` compiles
//! this file, so it needs only the standard library; its TLS connections are made by `openssl s_client`.
//!
//! `training SECONDS ADDRESS clear|tls SPENT KEY...`: seconds of hits, of which each other kind gets a tenth; a gateway; a
//! key whose minute is used up, and keys without effective limits. It fails if a response has another status than its kind.

use std::{error::Error, io::{BufRead, BufReader, Read, Write}, net::TcpStream, process::{Child, Command, Stdio}, thread, time::{Duration, Instant}};

/// Concurrent connections. Each has one request at a time.
const CONNECTIONS: usize = 8;
const LIST: &str = "/api/v1/models?period=24h";
/// Fields of a usual client.
const USUAL: &str = "Accept: */*\r\nUser-Agent: training/1.0\r\n";

type Failed = Box<dyn Error + Send + Sync>;

/// A kind of request.
#[derive(Clone)]
struct Kind {
    name: &'static str,
    seconds: f64,
    status: u16,
    is_tls: bool,
    is_http2: bool,
    /// The connections use them in turn.
    requests: Vec<Head>,
}

/// The head of a request: its target, and its fields as `NAME: VALUE` lines.
#[derive(Clone)]
struct Head {
    target: String,
    fields: String,
}

/// A connection to a gateway: a socket, or the pipes of a process that encrypts.
struct Connection {
    reader: BufReader<Box<dyn Read>>,
    writer: Box<dyn Write>,
    encrypts: Option<Child>,
    /// The next stream of HTTP/2.
    stream: u32,
}

/// A response without its body.
struct Reply {
    status: u16,
    tag: String,
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [seconds, address, security, spent, keys @ ..] = arguments.as_slice() else {
        return Err("usage: training SECONDS ADDRESS clear|tls SPENT KEY...".into());
    };
    let is_tls = security == "tls";
    let first = head(LIST, keys.first().ok_or("a key is missing")?, "");
    let mut connection = Connection::open(address, is_tls, false)?;
    let tag = connection.http1(&first)?.tag;
    // The first request of this key uses up its minute.
    connection.http1(&head(LIST, spent, ""))?;
    for kind in kinds(seconds.parse()?, keys, spent, &tag).iter().filter(|kind| kind.is_tls == is_tls) {
        println!("{}: {} responses in {:.1} s", kind.name, run(kind, address)?, kind.seconds);
    }
    Ok(())
}

/// All kinds of requests.
fn kinds(seconds: f64, keys: &[String], spent: &str, tag: &str) -> Vec<Kind> {
    let each = |target: &str, fields: &str| -> Vec<Head> {
        keys.iter().map(|key| head(target, key, fields)).collect()
    };
    let hits = Kind {
        name: "hits",
        seconds,
        status: 200,
        is_tls: false,
        is_http2: false,
        // One key in a bearer token, the others in a field of their own.
        requests: [
            each(LIST, ""),
            each(LIST, USUAL),
            keys.iter().take(1).map(|key| bearer(LIST, key)).collect(),
        ]
        .concat(),
    };
    let also =
        |name, status, requests| Kind { name, seconds: seconds / 10.0, status, requests, ..hits.clone() };
    let gzip = "Accept-Encoding: gzip, deflate, br\r\n";
    let tls = |kind: Kind| Kind { is_tls: true, ..kind };
    let http2 = |kind: Kind| Kind { is_http2: true, ..kind };
    vec![
        also("compressed", 200, each(LIST, gzip)),
        also("304", 304, each(LIST, &format!("If-None-Match: {tag}\r\n"))),
        also("401", 401, vec![head(LIST, "sg_live_wt6GgcgHrJMxDVmkvlmLWpKXNOCrsQ02u2GD", "")]),
        also("429", 429, vec![head(LIST, spent, "")]),
        http2(also("HTTP/2", 200, each(LIST, ""))),
        tls(also("TLS", 200, each(LIST, ""))),
        tls(http2(also("HTTP/2 with TLS", 200, each(LIST, gzip)))),
        hits,
    ]
}

fn head(target: &str, key: &str, fields: &str) -> Head {
    Head { target: target.to_owned(), fields: format!("X-API-Key: {key}\r\n{fields}") }
}

fn bearer(target: &str, key: &str) -> Head {
    Head { target: target.to_owned(), fields: format!("Authorization: Bearer {key}\r\n{USUAL}") }
}

/// Sends requests of a kind on all connections; returns the number of responses.
fn run(kind: &Kind, address: &str) -> Result<usize, Failed> {
    let until = Instant::now() + Duration::from_secs_f64(kind.seconds);
    let work = |number: usize| -> Result<usize, Failed> {
        let mut connection = Connection::open(address, kind.is_tls, kind.is_http2)?;
        let mut count = 0;
        for head in kind.requests.iter().cycle().skip(number) {
            let status = if kind.is_http2 {
                connection.http2(head, kind.is_tls)?
            } else {
                connection.http1(head)?.status
            };
            if status != kind.status {
                return Err(format!("{}: a response has status {status}", kind.name).into());
            }
            count += 1;
            // At least one, also on a busy machine.
            if Instant::now() >= until {
                break;
            }
        }
        Ok(count)
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(move || work(number))).collect();
        workers.into_iter().map(|worker| worker.join().map_err(|_| "a thread panicked")?).sum()
    })
}

impl Connection {
    fn open(address: &str, is_tls: bool, is_http2: bool) -> Result<Self, Failed> {
        let mut connection = if is_tls {
            let protocol = if is_http2 { "h2" } else { "http/1.1" };
            let mut child = Command::new("openssl")
                .args(["s_client", "-quiet", "-alpn", protocol, "-connect", address])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()?;
            let reader = child.stdout.take().ok_or("no pipe")?;
            let writer = child.stdin.take().ok_or("no pipe")?;
            Self::of(Box::new(reader), Box::new(writer), Some(child))
        } else {
            let socket = TcpStream::connect(address)?;
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(Duration::from_secs(10)))?;
            Self::of(Box::new(socket.try_clone()?), Box::new(socket), None)
        };
        if is_http2 {
            // The preface, no settings, and a window of the connection that is enough for the training.
            let window = (i32::MAX - 65_535).to_be_bytes();
            let settings = frame(4, 0, 0, &[]);
            let window = frame(8, 0, 0, &window);
            connection
                .writer
                .write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &settings[..], &window].concat())?;
        }
        Ok(connection)
    }

    fn of(reader: Box<dyn Read>, writer: Box<dyn Write>, encrypts: Option<Child>) -> Self {
        Self { reader: BufReader::with_capacity(65_536, reader), writer, encrypts, stream: 1 }
    }

    /// One exchange of HTTP/1.1.
    fn http1(&mut self, head: &Head) -> Result<Reply, Failed> {
        let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", head.target, head.fields);
        self.writer.write_all(request.as_bytes())?;
        self.writer.flush()?;
        let mut reply = Reply { status: 0, tag: String::new() };
        let mut length = 0;
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                return Err("a gateway closed a connection".into());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                match line.split(' ').nth(1) {
                    Some(status) => reply.status = status.parse()?,
                    None => break,
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "etag" => value.clone_into(&mut reply.tag),
                "content-length" => length = value.parse()?,
                _ => {}
            }
        }
        let length = if reply.status == 304 { 0 } else { length };
        self.skip(length)?;
        Ok(reply)
    }

    /// One exchange of HTTP/2; returns the status.
    fn http2(&mut self, head: &Head, is_tls: bool) -> Result<u16, Failed> {
        // Indexed `:method: GET` and `:scheme`; the other fields are literals without indexing.
        let mut block = vec![0x82, if is_tls { 0x87 } else { 0x86 }];
        literal(&mut block, &[0x04], &head.target)?;
        literal(&mut block, &[0x01], "localhost")?;
        for (name, value) in head.fields.lines().filter_map(|line| line.split_once(": ")) {
            let mut named = vec![0x00, u8::try_from(name.len())?];
            named.extend(name.to_ascii_lowercase().bytes());
            literal(&mut block, &named, value)?;
        }
        let stream = self.stream;
        self.stream += 2;
        self.writer.write_all(&frame(1, 5, stream, &block))?;
        self.writer.flush()?;
        let mut status = 0;
        loop {
            let mut start = [0; 9];
            self.reader.read_exact(&mut start)?;
            let [a, b, c, kind, flags, at @ ..] = start;
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if kind == 1 {
                let mut block = vec![0; length];
                self.reader.read_exact(&mut block)?;
                // `:status: 200` is the first field that HPACK has a number for.
                status = if block.first() == Some(&0x88) { 200 } else { 1 };
            } else {
                self.skip(length)?;
            }
            if kind == 4 && flags & 1 == 0 {
                self.writer.write_all(&frame(4, 1, 0, &[]))?;
            }
            if kind == 7 || kind == 3 {
                return Err("a gateway ended HTTP/2".into());
            }
            if kind <= 1 && flags & 1 == 1 && u32::from_be_bytes(at) == stream {
                return Ok(status);
            }
        }
    }

    fn skip(&mut self, length: usize) -> Result<(), Failed> {
        let mut rest = length;
        while rest > 0 {
            let read = self.reader.fill_buf()?.len().min(rest);
            if read == 0 {
                return Err("a gateway closed a connection".into());
            }
            self.reader.consume(read);
            rest -= read;
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(child) = &mut self.encrypts {
            let _is_over = child.kill();
            let _status = child.wait();
        }
    }
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A field of HPACK whose value is shorter than 127 bytes.
fn literal(block: &mut Vec<u8>, name: &[u8], value: &str) -> Result<(), Failed> {
    block.extend(name);
    block.push(u8::try_from(value.len()).ok().filter(|length| *length < 127).ok_or("a value is too long")?);
    block.extend(value.bytes());
    Ok(())
}
