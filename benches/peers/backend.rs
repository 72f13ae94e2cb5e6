//! The backends of the contestants: one response each. Requested once per contestant, so speed does not matter.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{answer::Answer, job::model};

/// Bytes of data for a gateway body of 5.7 KB, and for one of 3.1 KB.
pub const DATA: usize = 5_390;
pub const LESS_DATA: usize = 2_790;

/// No refresh during the measurement.
const FIELDS: &str = "content-type: application/json\r\ncache-control: max-age=86400\r\n";

/// A backend for the gateway: scores in the envelope that it expects, with this many bytes of data.
pub fn of_scores(size: usize) -> SocketAddr {
    let mut items = Vec::new();
    let mut bytes = 2;
    for number in 0.. {
        let item = format!(
            "{{\"id\":\"model-{number:02}\",\"name\":\"Model {number:02}\",\"provider\":\"provider-{number:02}\",\
             \"currentScore\":{}.25,\"trend\":\"stable\",\"status\":\"good\",\"lastUpdated\":\"2026-11-21T12:00:00Z\"}}",
            90 - number
        );
        if bytes + item.len() + 1 > size {
            break;
        }
        bytes += item.len() + 1;
        items.push(item);
    }
    let last = items.last_mut().unwrap();
    *last = last.replace(
        "\"name\":\"",
        &format!("\"name\":\"{}", "M".repeat(size - bytes + 1)),
    );
    let data = items.join(",");
    let body =
        format!("{{\"success\":true,\"generated_at\":\"2026-11-21T12:00:00Z\",\"data\":[{data}]}}");
    serve(FIELDS, body.as_bytes())
}

/// A backend for a gateway with this many models: each detail is as large as the list elsewhere.
pub fn of_models(count: usize, tls: Option<Arc<ServerConfig>>) -> SocketAddr {
    let item = |id: &str, name: &str| {
        format!("{{\"id\":\"{id}\",\"name\":\"{name}\",\"currentScore\":70.25}}")
    };
    let envelope = |data: &str| {
        format!("{{\"success\":true,\"generated_at\":\"2026-11-21T12:00:00Z\",\"data\":[{data}]}}")
    };
    let list = envelope(
        &(0..count)
            .map(|number| item(&model(number), "M"))
            .collect::<Vec<_>>()
            .join(","),
    );
    let name = "M".repeat(DATA);
    serve_each(FIELDS, tls, move |target| {
        let path = target.split('?').next().unwrap_or(target);
        match path.rsplit_once("models/") {
            Some((_, id)) => envelope(&item(id, &name)).into_bytes(),
            None => list.clone().into_bytes(),
        }
    })
}

/// A backend for the peers: the gateway's response, with the storable part of its head.
pub fn of_answer(answer: &Answer) -> SocketAddr {
    let kept = [
        "content-type",
        "etag",
        "last-modified",
        "x-content-type-options",
    ];
    let fields: String = kept
        .map(|name| format!("{name}: {}\r\n", answer.field(name)))
        .concat();
    serve(
        &format!("{fields}cache-control: public, max-age=86400\r\n"),
        answer.body(),
    )
}

fn serve(fields: &str, body: &[u8]) -> SocketAddr {
    let body = body.to_vec();
    serve_each(fields, None, move |_| body.clone())
}

/// Serves by request target, with TLS if there are settings for it.
fn serve_each(
    fields: &str,
    tls: Option<Arc<ServerConfig>>,
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let fields = fields.to_owned();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let fields = fields.clone();
            let answer = Arc::clone(&answer);
            stream.set_nodelay(true).unwrap();
            let tls = tls.clone();
            std::thread::spawn(move || match tls {
                None => answer_all(stream, &fields, &*answer),
                Some(config) => {
                    let connection = ServerConnection::new(config).unwrap();
                    answer_all(StreamOwned::new(connection, stream), &fields, &*answer);
                }
            });
        }
    });
    address
}

/// Answers the requests of a connection.
fn answer_all(stream: impl Read + Write, fields: &str, answer: &dyn Fn(&str) -> Vec<u8>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    let mut target = String::new();
    while stream.read_line(&mut line).is_ok_and(|read| read > 0) {
        if let Some(rest) = line.strip_prefix("GET ") {
            rest.split(' ').next().unwrap_or("").clone_into(&mut target);
        }
        if line == "\r\n" {
            let body = answer(&target);
            let head = format!(
                "HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n",
                body.len()
            );
            let stream = stream.get_mut();
            if stream
                .write_all(&[head.as_bytes(), &body].concat())
                .and_then(|()| stream.flush())
                .is_err()
            {
                return;
            }
        }
        line.clear();
    }
}
