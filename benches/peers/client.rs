//! The client: many keep-alive connections, one thread, minimal work per response, so that the contestant is measured
//! and not the client. In a closed loop each connection sends its next request after a response; at a rate, requests
//! are due by the clock, and latencies count from that time. Responses are checked by status and length;
//! `contestants` checks one completely.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::answer::Extent;
use crate::job::Job;

/// Number of connections.
pub(crate) const CONNECTIONS: usize = 64;
/// A response on loopback that takes this long is considered lost.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The result.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Number of responses.
    pub(crate) answers: usize,
    /// Responses with a status other than expected.
    pub(crate) strange: usize,
    /// From the first request to the last response.
    pub(crate) lasted: Duration,
    /// Latencies; only at a rate.
    pub(crate) took: Vec<Duration>,
    /// Whether the rate exceeds the contestant's capacity.
    pub(crate) is_too_much: bool,
}

/// All connections to one contestant.
pub(crate) struct ClientPool {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    members: Vec<ClientConnection>,
}

impl ClientPool {
    /// Connects to this address.
    pub(crate) fn to(address: SocketAddr) -> Self {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let members: Vec<ClientConnection> =
            (0..CONNECTIONS).map(|_| ClientConnection::to(address)).collect();
        for (number, connection) in (0..).zip(&members) {
            let data = epoll::EventData::new_u64(number);
            epoll::add(&epoll, &connection.stream, data, epoll::EventFlags::IN).unwrap();
        }
        Self { epoll, events: Vec::with_capacity(CONNECTIONS), members }
    }

    /// Closed loop: each connection sends its next request after a response.
    pub(crate) fn without_pause(&mut self, job: &Job, duration: Duration) -> Outcome {
        let (mut outcome, started_at) = (Outcome::default(), Instant::now());
        for number in 0..self.members.len() {
            self.send(job, number, started_at);
        }
        let mut open = self.members.len();
        while open > 0 {
            let elapsed = started_at.elapsed();
            assert!(elapsed < duration + STALL_TIMEOUT, "{open} requests were never answered");
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
    pub(crate) fn at_rate(&mut self, job: &Job, rate: f64, duration: Duration) -> Outcome {
        let (mut outcome, started_at) = (Outcome::default(), Instant::now());
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
                let Some(number) = free.pop_front() else { break };
                self.send(job, number, due(sent));
                sent += 1;
            }
            assert!(now < started_at + duration + STALL_TIMEOUT, "requests were never answered");
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
        // Far below the size of a socket buffer.
        assert_eq!(connection.stream.write(request).unwrap(), request.len());
    }

    /// Connections with data to read.
    fn ready(&mut self, patience: Duration) -> Vec<usize> {
        let patience = Timespec { tv_sec: patience.as_secs().cast_signed(), tv_nsec: 0 };
        self.events.clear();
        epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&patience)).unwrap();
        self.events.iter().map(|event| event.data.u64() as usize).collect()
    }
}

/// One connection.
struct ClientConnection {
    stream: TcpStream,
    bytes: Vec<u8>,
    filled: usize,
    /// The previous response: most have the same length, which saves parsing.
    before: Extent,
    due: Instant,
}

impl ClientConnection {
    fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self { stream, bytes: vec![0; 32_768], filled: 0, before: Extent::default(), due: Instant::now() }
    }

    /// Reads available data; returns whether the response is complete.
    fn has_answer(&mut self, status: u16, outcome: &mut Outcome) -> bool {
        match self.stream.read(&mut self.bytes[self.filled..]) {
            Ok(0) => {
                panic!("a connection was ended: {}", String::from_utf8_lossy(&self.bytes[..self.filled]))
            }
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) => panic!("a connection broke: {error}"),
        }
        let so_far = &self.bytes[..self.filled];
        let Extent { head, whole } = self.before;
        let is_as_before = whole == self.filled && head >= 4 && so_far[head - 4..head] == *b"\r\n\r\n";
        if !is_as_before {
            match Extent::of(so_far).filter(|extent| self.filled >= extent.whole) {
                Some(extent) => self.before = extent,
                None => return false,
            }
        }
        outcome.answers += 1;
        outcome.strange += usize::from(so_far[9..12] != *status.to_string().as_bytes());
        true
    }
}
