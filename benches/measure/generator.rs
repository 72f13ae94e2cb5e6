//! The load generator of the benches: requests are due at times that do not depend on the server.
//!
//! Each connection has a thread, which sleeps until its next request is due. A latency counts from that time, so a stalled
//! server is charged for all requests that were due meanwhile.

use std::{
    io::{Error, ErrorKind, Read, Result},
    path::Path,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;

/// A complete response.
pub struct HttpResponse {
    pub status: u16,
    /// Status line and header fields in lower case.
    head: String,
    pub body: Vec<u8>,
}

/// Latencies in nanoseconds, and the number of requests that failed.
pub struct Latencies {
    pub taken: Histogram<u64>,
    pub failed: u64,
}

impl HttpResponse {
    /// Reads a response with a stated length; without one it has no body.
    pub fn read(stream: &mut impl Read) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut chunk = [0; 16 * 1_024];
        loop {
            let read = stream.read(&mut chunk)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            bytes.extend_from_slice(&chunk[..read]);
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let status = head.get(9..12).and_then(|status| status.parse().ok());
            let mut response = Self {
                status: status.ok_or_else(|| Error::other(head.clone()))?,
                head,
                body: Vec::new(),
            };
            let length = response.field("content-length").unwrap_or("0");
            if bytes.len() >= end + 4 + length.parse::<usize>().unwrap() {
                response.body = bytes.split_off(end + 4);
                return Ok(response);
            }
        }
    }

    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

impl Latencies {
    fn new() -> Self {
        Self {
            taken: Histogram::new(3).unwrap(),
            failed: 0,
        }
    }

    /// Sends a request at each of these times. A late response delays the next request.
    pub fn at(times: impl Iterator<Item = Instant>, mut send: impl FnMut() -> Result<()>) -> Self {
        let mut latencies = Self::new();
        for due in times {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            match send() {
                Ok(()) => latencies.taken += u64::try_from(due.elapsed().as_nanos()).unwrap(),
                Err(_) => latencies.failed += 1,
            }
        }
        latencies
    }

    /// The sum of these.
    pub fn sum(all: impl Iterator<Item = Self>) -> Self {
        let mut sum = Self::new();
        for latencies in all {
            sum.taken.add(latencies.taken).unwrap();
            sum.failed += latencies.failed;
        }
        sum
    }

    pub fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.taken.value_at_quantile(quantile))
    }
}

/// Times at a constant interval.
pub fn every(interval: Duration) -> impl Iterator<Item = Instant> {
    let begun = Instant::now();
    (1_u32..).map(move |number| begun + interval * number)
}

/// The kernel may let this thread sleep 50 us longer than requested, as long as a hit takes. If this timer slack
/// cannot be reduced, it counts as the client's own delay.
pub fn sleep_finely() {
    let thread = std::fs::read_link("/proc/thread-self").ok();
    if let Some(number) = thread.as_deref().and_then(|path| path.file_name()) {
        let slack = Path::new("/proc").join(number).join("timerslack_ns");
        drop(std::fs::write(slack, "1"));
    }
}
