//! The backends behind the contestants: one answer each, the same for whatever is asked. Asked once by each contestant, so
//! nothing here has to be quick. Not for: what is measured.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};

use crate::answer::Answer;

/// Bytes of data that make the gateway's body 5.7 KB.
const DATA: usize = 5_390;

/// A backend for the gateway: scores in the envelope that it expects.
pub(crate) fn of_scores() -> SocketAddr {
    let mut items = Vec::new();
    let mut bytes = 2;
    for number in 0.. {
        let item = format!(
            "{{\"id\":\"model-{number:02}\",\"name\":\"Model {number:02}\",\"provider\":\"provider-{number:02}\",\
             \"currentScore\":{}.25,\"trend\":\"stable\",\"status\":\"good\",\"lastUpdated\":\"2026-11-21T12:00:00Z\"}}",
            90 - number
        );
        if bytes + item.len() + 1 > DATA {
            break;
        }
        bytes += item.len() + 1;
        items.push(item);
    }
    let last = items.last_mut().unwrap();
    *last = last.replace("\"name\":\"", &format!("\"name\":\"{}", "M".repeat(DATA - bytes + 1)));
    let data = items.join(",");
    let body = format!("{{\"success\":true,\"generated_at\":\"2026-11-21T12:00:00Z\",\"data\":[{data}]}}");
    // Nothing is refreshed while it is measured.
    serve("content-type: application/json\r\ncache-control: max-age=86400\r\n", body.as_bytes())
}

/// A backend for the peers: what the gateway sent, with as much of its head as can be stored.
pub(crate) fn of_answer(answer: &Answer) -> SocketAddr {
    let kept = ["content-type", "etag", "last-modified", "x-content-type-options"];
    let fields: String = kept.map(|name| format!("{name}: {}\r\n", answer.field(name))).concat();
    serve(&format!("{fields}cache-control: public, max-age=86400\r\n"), answer.body())
}

fn serve(fields: &str, body: &[u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let head = format!("HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n", body.len());
    let answer = [head.as_bytes(), body].concat();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while let Some(Ok(line)) = lines.next() {
                    if line.is_empty() && stream.write_all(&answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}
