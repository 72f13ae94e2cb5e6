//! The client: many keep-alive connections, one thread, minimal work per response, so that the contestant is measured
//! and not the client. In a closed loop each connection sends its next request after a response; at a rate, requests
//! are due by the clock, and latencies count from that time. Responses are checked by status and length;
//! `contestants` checks one completely.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{Timespec, epoll},
};

use crate::{
    answer::Extent,
    job::Job,
    transport::{Transport, frames, on_stream},
};

/// Number of connections.
pub const CONNECTIONS: usize = 64;
/// A response on loopback that takes this long is considered lost.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The result.
#[derive(Default)]
pub struct Outcome {
    /// Number of responses.
    pub answers: usize,
    /// Responses with a status other than expected.
    pub strange: usize,
    /// From the first request to the last response.
    pub lasted: Duration,
    /// Latencies; only at a rate.
    pub took: Vec<Duration>,
    /// Whether the rate exceeds the contestant's capacity.
    pub is_too_much: bool,
}

/// All connections to one contestant.
pub struct ClientPool {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    members: Vec<ClientConnection>,
}

impl ClientPool {
    /// Connects to this address.
    pub fn to(address: SocketAddr, transport: &Transport) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let members: Vec<ClientConnection> = (0..CONNECTIONS)
            .map(|_| ClientConnection::to(address, transport))
            .collect();
        for (number, connection) in (0..).zip(&members) {
            let data = epoll::EventData::new_u64(number);
            epoll::add(&epoll, &connection.stream, data, epoll::EventFlags::IN).unwrap();
        }
        Self {
            epoll,
            events: Vec::with_capacity(CONNECTIONS),
            members,
        }
    }

    /// Closed loop: each connection sends its next request after a response.
    pub fn without_pause(&mut self, job: &Job, duration: Duration) -> Outcome {
        let mut outcome = Outcome::default();
        let started_at = Instant::now();
        for number in 0..self.members.len() {
            self.send(job, number, started_at);
        }
        let mut open = self.members.len();
        while open > 0 {
            let elapsed = started_at.elapsed();
            assert!(
                elapsed < duration + STALL_TIMEOUT,
                "{open} requests were never answered"
            );
            for number in self.ready(Duration::from_secs(1)) {
                if self.members[number].has_answer(job.status, &mut outcome) {
                    open -= 1;
                    if elapsed < duration {
                        self.send(job, number, started_at);
                        open += 1;
                    }
                }
            }
        }
        outcome.lasted = started_at.elapsed();
        outcome
    }

    /// Sends at a fixed rate. The client spins, since a timer would be less precise than the measured times. A run
    /// that falls a second behind is stopped.
    pub fn at_rate(&mut self, job: &Job, rate: f64, duration: Duration) -> Outcome {
        let mut outcome = Outcome::default();
        let started_at = Instant::now();
        let mut free: VecDeque<usize> = (0..self.members.len()).collect();
        let all = (rate * duration.as_secs_f64()) as usize;
        let due = |number: usize| started_at + Duration::from_secs_f64(number as f64 / rate);
        let mut sent = 0;
        while outcome.answers < all {
            let now = Instant::now();
            if outcome.is_too_much && free.len() == self.members.len() {
                break;
            }
            while !outcome.is_too_much && sent < all && due(sent) <= now {
                outcome.is_too_much = now - due(sent) > Duration::from_secs(1);
                let Some(number) = free.pop_front() else {
                    break;
                };
                self.send(job, number, due(sent));
                sent += 1;
            }
            assert!(
                now < started_at + duration + STALL_TIMEOUT,
                "requests were never answered"
            );
            for number in self.ready(Duration::ZERO) {
                if self.members[number].has_answer(job.status, &mut outcome) {
                    outcome.took.push(self.members[number].due.elapsed());
                    free.push_back(number);
                }
            }
        }
        outcome.lasted = started_at.elapsed();
        outcome.is_too_much |= outcome.lasted > duration.mul_f64(1.1);
        outcome
    }

    fn send(&mut self, job: &Job, number: usize, due: Instant) {
        let request = job.next();
        let connection = &mut self.members[number];
        (connection.due, connection.filled) = (due, 0);
        connection.send(request);
    }

    /// Connections with data to read.
    fn ready(&mut self, patience: Duration) -> Vec<usize> {
        let patience = Timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: 0,
        };
        self.events.clear();
        epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            Some(&patience),
        )
        .unwrap();
        self.events
            .iter()
            .map(|event| event.data.u64() as usize)
            .collect()
    }
}

/// One connection.
struct ClientConnection {
    stream: TcpStream,
    tls: Option<rustls::ClientConnection>,
    /// The stream of the last request on HTTP/2.
    http2: Option<u32>,
    bytes: Vec<u8>,
    filled: usize,
    /// The previous response: most have the same length, which saves parsing.
    before: Extent,
    due: Instant,
}

impl ClientConnection {
    fn to(address: SocketAddr, transport: &Transport) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let tls = transport.open(&mut stream);
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            tls,
            // Numbers of streams are odd.
            http2: matches!(transport, Transport::Http2).then_some(u32::MAX),
            bytes: vec![0; 32_768],
            filled: 0,
            before: Extent::default(),
            due: Instant::now(),
        }
    }

    fn send(&mut self, request: &[u8]) {
        // Far below the size of a socket buffer.
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(request).unwrap();
            while tls.wants_write() {
                tls.write_tls(&mut self.stream).unwrap();
            }
        } else if let Some(stream) = &mut self.http2 {
            *stream = stream.wrapping_add(2);
            self.stream.write_all(&on_stream(request, *stream)).unwrap();
        } else {
            assert_eq!(self.stream.write(request).unwrap(), request.len());
        }
    }

    /// Reads available data; returns whether the response is complete.
    fn has_answer(&mut self, status: u16, outcome: &mut Outcome) -> bool {
        let is_expected = if self.has_read() {
            self.is_expected(status)
        } else {
            None
        };
        outcome.answers += usize::from(is_expected.is_some());
        outcome.strange += usize::from(is_expected == Some(false));
        is_expected.is_some()
    }

    /// Reads available bytes; returns whether there is more of the response than before.
    fn has_read(&mut self) -> bool {
        let space = &mut self.bytes[self.filled..];
        let read = match &mut self.tls {
            None => self.stream.read(space),
            Some(tls) => match tls.read_tls(&mut self.stream) {
                Ok(0) => Ok(0),
                Ok(_) => {
                    tls.process_new_packets().unwrap();
                    tls.reader().read(space)
                }
                Err(error) => Err(error),
            },
        };
        match read {
            Ok(0) => {
                panic!(
                    "a connection was ended: {}",
                    String::from_utf8_lossy(&self.bytes[..self.filled])
                )
            }
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("a connection broke: {error}"),
        }
        true
    }

    /// Whether the response has this status; `None` until it is complete.
    fn is_expected(&mut self, status: u16) -> Option<bool> {
        let so_far = &self.bytes[..self.filled];
        if self.http2.is_some() {
            return frames(so_far);
        }
        let Extent { head, whole } = self.before;
        let is_as_before =
            whole == self.filled && head >= 4 && so_far[head - 4..head] == *b"\r\n\r\n";
        if !is_as_before {
            self.before = Extent::of(so_far).filter(|extent| self.filled >= extent.whole)?;
        }
        Some(so_far[9..12] == *status.to_string().as_bytes())
    }
}
