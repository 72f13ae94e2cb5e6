//! Lower bounds: servers without any logic that send the gateway's response. One is a loop over system calls, the
//! others the gateway's HTTP codecs by themselves; and the sketch of the whole job. Each is a process of its own, so that
//! its CPU time can be measured.

use std::{
    convert::Infallible,
    io::{ErrorKind, Read as _, Write as _},
    net::TcpListener,
    path::Path,
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::Full;
use hyper::{
    Request, Response,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::{buffer::spare_capacity, event::epoll};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::{
    sketch::Sketch,
    transport::{CERTIFICATE, KEY, server_config},
};

/// Prefix of the line with the listening address.
pub const LISTENS: &str = "listening on ";
/// The loop's name among this program's arguments.
pub const RAW: &str = "floor-raw";
/// That of the loop that accesses the memory of accounts.
pub const ACCESSES: &str = "floor-accesses";
/// The codec's.
pub const BARE: &str = "floor-bare";
/// The codec's with two workers.
pub const BARE_OF_TWO: &str = "floor-bare-two";
/// The codec's behind TLS.
pub const BARE_TLS: &str = "floor-bare-tls";
/// The codec's of HTTP/2.
pub const BARE_HTTP2: &str = "floor-bare-http2";
/// The sketch's.
pub const SKETCH: &str = "floor-sketch";

/// Cache lines of an account that a hit of the gateway accesses, rounded down: with 400 and with 600 keys in use instead of ten,
/// callgrind's simulation of a data cache of 128 KB has 27 and 77 more misses; 8.7 without the exchanges for leases.
const ACCOUNT_LINES: usize = 8;

#[derive(Clone, Default)]
#[repr(align(64))]
struct CacheLine([u64; 8]);

/// The limits of the gateway for an HTTP/2 connection.
const WINDOW: u32 = 65_535;
const FRAME: u32 = 16_384;
const STREAMS: u32 = 100;
const SEND_BUFFER: usize = 64 * 1_024;

/// Runs one of them if the arguments request it. It ends with its parent.
pub fn is_played(arguments: &[String]) -> bool {
    let [_, role, file, copies] = arguments else {
        return false;
    };
    if !role.starts_with("floor-") {
        return false;
    }
    let file = Path::new(file);
    let mut one = tokio::runtime::Builder::new_current_thread();
    let answer = std::fs::read(file).unwrap();
    let directory = file.parent().unwrap();
    std::thread::spawn(|| {
        drop(std::io::stdin().read(&mut [0]));
        std::process::exit(0);
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    println!("{LISTENS}{}", listener.local_addr().unwrap());
    let constant = Constant::of(&answer);
    match role.as_str() {
        RAW => raw(
            &listener,
            &vec![answer; copies.parse().unwrap()],
            &[CacheLine::default()],
        ),
        ACCESSES => {
            let accounts: usize = copies.parse().unwrap();
            raw(
                &listener,
                &[answer],
                &vec![CacheLine([1; 8]); accounts * ACCOUNT_LINES],
            );
        }
        BARE => serve(&mut one, listener, move |stream| {
            http1(stream, constant.clone())
        }),
        BARE_OF_TWO => {
            let mut two = tokio::runtime::Builder::new_multi_thread();
            serve(two.worker_threads(2), listener, move |stream| {
                http1(stream, constant.clone())
            });
        }
        BARE_HTTP2 => serve(&mut one, listener, move |stream| {
            http2(stream, constant.clone())
        }),
        BARE_TLS => {
            let acceptor = acceptor(directory);
            serve(&mut one, listener, move |stream| {
                let acceptor = acceptor.clone();
                let constant = constant.clone();
                async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        http1(stream, constant).await;
                    }
                }
            });
        }
        _ => {
            let sketch = Arc::new(Sketch::new(directory, constant.fields, constant.body));
            serve(&mut one, listener, move |stream| {
                let sketch = Arc::clone(&sketch);
                let answer = move |request: Request<Incoming>| {
                    let response = sketch.answer(&request);
                    async move { Ok::<_, Infallible>(response) }
                };
                async move {
                    let served = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service_fn(answer));
                    let _has_ended = served.await;
                }
            });
        }
    }
    true
}

/// Three system calls per request: wait, read, write. Copies are chosen in random order, and as many cache lines are read as
/// an account has, each at an address that depends on the line before.
fn raw(listener: &TcpListener, copies: &[Vec<u8>], lines: &[CacheLine]) {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let watch = |source: &dyn std::os::fd::AsFd, number: usize| {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, source.as_fd(), data, epoll::EventFlags::IN).unwrap();
    };
    watch(listener, 0);
    let mut streams = vec![None];
    let mut events = Vec::with_capacity(256);
    let mut bytes = vec![0; 16_384];
    let mut draw = 0_u64;
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None).unwrap();
        for event in &events {
            let number = event.data.u64() as usize;
            if number == 0 {
                let stream = listener.accept().unwrap().0;
                stream.set_nonblocking(true).unwrap();
                stream.set_nodelay(true).unwrap();
                watch(&stream, streams.len());
                streams.push(Some(stream));
                continue;
            }
            let Some(stream) = &mut streams[number] else {
                continue;
            };
            match stream.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(read) if read > 0 => {
                    // The client sends whole requests, one at a time.
                    assert!(bytes[..read].ends_with(b"\r\n\r\n"), "a request in pieces");
                    for _ in 0..ACCOUNT_LINES {
                        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        draw = draw.wrapping_add(lines[(draw >> 33) as usize % lines.len()].0[0]);
                    }
                    stream
                        .write_all(&copies[(draw >> 33) as usize % copies.len()])
                        .unwrap();
                }
                Ok(_) | Err(_) => streams[number] = None,
            }
        }
    }
}

/// Serves connections by this function.
fn serve<F, C>(runtime: &mut tokio::runtime::Builder, listener: TcpListener, connection: F)
where
    F: Fn(tokio::net::TcpStream) -> C + Send + 'static,
    C: Future<Output = ()> + Send + 'static,
{
    let runtime = runtime.enable_all().build().unwrap();
    let accepting = runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(connection(stream));
        }
    });
    runtime.block_on(accepting).unwrap();
}

/// A response of a typical service: fields are cloned, the body is shared. The codec adds date and length, as for the
/// gateway.
#[derive(Clone)]
struct Constant {
    status: StatusCode,
    fields: HeaderMap,
    body: Bytes,
}

impl Constant {
    fn of(answer: &[u8]) -> Self {
        let end = answer
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .unwrap();
        let head = std::str::from_utf8(&answer[..end]).unwrap();
        let mut fields = HeaderMap::new();
        for line in head.lines().skip(1) {
            let (name, value) = line.split_once(": ").unwrap();
            if name != "date" && name != "content-length" {
                let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
                fields.append(name, HeaderValue::from_str(value).unwrap());
            }
        }
        let status = StatusCode::from_bytes(&answer[9..12]).unwrap();
        Self {
            status,
            fields,
            body: Bytes::copy_from_slice(&answer[end + 4..]),
        }
    }

    fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.fields.clone();
        response
    }
}

async fn http1<S>(stream: S, constant: Constant)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let answer = move |_: Request<Incoming>| {
        let response = constant.response();
        async move { Ok::<_, Infallible>(response) }
    };
    let _has_ended = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

async fn http2(stream: tokio::net::TcpStream, constant: Constant) {
    let answer = move |_: Request<Incoming>| {
        let response = constant.response();
        async move { Ok::<_, Infallible>(response) }
    };
    let served = http2::Builder::new(TokioExecutor::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .max_send_buf_size(SEND_BUFFER)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    let _has_ended = served.await;
}

/// TLS as the gateway has it.
fn acceptor(directory: &Path) -> TlsAcceptor {
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    TlsAcceptor::from(server_config(&read(CERTIFICATE), &read(KEY)))
}
