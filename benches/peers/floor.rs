//! Lower bounds: servers without any logic that send the gateway's response. One is a loop over system calls, the
//! other the gateway's HTTP codec by itself. Each is a process of its own, so that its CPU time can be measured.

use std::convert::Infallible;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;

/// Prefix of the line with the listening address.
pub(crate) const LISTENS: &str = "listening on ";
/// The loop's name among this program's arguments.
pub(crate) const RAW: &str = "floor-raw";
/// The codec's.
pub(crate) const BARE: &str = "floor-bare";
/// The codec's with two workers.
pub(crate) const BARE_OF_TWO: &str = "floor-bare-two";

/// Runs one of them if the arguments request it. It ends with its parent.
pub(crate) fn is_played(arguments: &[String]) -> bool {
    let [_, role, file, copies] = arguments else { return false };
    if ![RAW, BARE, BARE_OF_TWO].contains(&role.as_str()) {
        return false;
    }
    let answer = std::fs::read(Path::new(file)).unwrap();
    std::thread::spawn(|| {
        drop(std::io::stdin().read(&mut [0]));
        std::process::exit(0);
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    println!("{LISTENS}{}", listener.local_addr().unwrap());
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    match role.as_str() {
        RAW => raw(&listener, &vec![answer; copies.parse().unwrap()]),
        BARE => bare(&mut tokio::runtime::Builder::new_current_thread(), listener, &answer),
        _ => bare(threads.worker_threads(2), listener, &answer),
    }
    true
}

/// Three system calls per request: wait, read, write. Copies are chosen in random order.
fn raw(listener: &TcpListener, copies: &[Vec<u8>]) {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let watch = |source: &dyn std::os::fd::AsFd, number: usize| {
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, source.as_fd(), data, epoll::EventFlags::IN).unwrap();
    };
    watch(listener, 0);
    let (mut streams, mut events) = (vec![None], Vec::with_capacity(256));
    let (mut bytes, mut draw) = (vec![0; 16_384], 0_u64);
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
            let Some(stream) = &mut streams[number] else { continue };
            match stream.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(read) if read > 0 => {
                    // The client sends whole requests, one at a time.
                    assert!(bytes[..read].ends_with(b"\r\n\r\n"), "a request in pieces");
                    draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    stream.write_all(&copies[(draw >> 33) as usize % copies.len()]).unwrap();
                }
                Ok(_) | Err(_) => streams[number] = None,
            }
        }
    }
}

/// A typical service: fields are cloned, the body is shared. The codec adds date and length, as for the gateway.
fn bare(runtime: &mut tokio::runtime::Builder, listener: TcpListener, answer: &[u8]) {
    let (fields, body) = parts(answer);
    let runtime = runtime.enable_all().build().unwrap();
    let accepting = runtime.spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (fields, body) = (fields.clone(), body.clone());
            let service = hyper::service::service_fn(move |_: Request<Incoming>| {
                let mut response = Response::new(Full::new(body.clone()));
                *response.headers_mut() = fields.clone();
                async move { Ok::<_, Infallible>(response) }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    runtime.block_on(accepting).unwrap();
}

fn parts(answer: &[u8]) -> (HeaderMap, Bytes) {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let mut fields = HeaderMap::new();
    for line in head.lines().skip(1) {
        let (name, value) = line.split_once(": ").unwrap();
        if name != "date" && name != "content-length" {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            fields.append(name, HeaderValue::from_str(value).unwrap());
        }
    }
    (fields, Bytes::copy_from_slice(&answer[end + 4..]))
}
