//! The body of a request. A body that has not arrived with its head is awaited, within the memory budget for all
//! bodies.

use std::{mem::take, net::IpAddr, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyExt as _;
use metrics::Counter;

use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;

use super::fair_shares::{FairShares, Holder, Share};

/// Time for a body to arrive after its head.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Memory for all awaited bodies, and the part of it that clients without a key may use.
const BUDGET: usize = 32 << 20;
// The rest of `BUDGET` is reserved for applications, however many clients without a key there are.
const WITHOUT_KEY: usize = 24 << 20;
/// Memory that the codec uses for a request whose body is awaited: the buffer that contains its head, the buffer that
/// receives its body, and with TLS the record that carries them.
const READ_BUFFERS: usize = 24 << 10;
/// Memory for the codecs of HTTP/2 connections on which no response has been sent.
const HTTP2_CODECS: usize = 12 << 20;
/// Memory for one HTTP/2 codec: the buffers for incoming and outgoing frames.
const HTTP2_CODEC: usize = 28 << 10;

/// The memory for awaited bodies, and for the codecs of HTTP/2 connections without a response.
pub struct BodyBudget {
    shares: Arc<FairShares>,
    codecs: Arc<FairShares>,
    refused: Counter,
}

/// The reason why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFailure {
    /// The body is incomplete or not framed correctly.
    Broken,
    /// The body has trailers. On HTTP/2 the codec removes pseudo-header fields from them.
    Trailers,
    /// The body is too large.
    TooLarge,
    /// The body did not arrive in time.
    Slow,
    /// Too many other bodies are awaited, or one of them displaced this body.
    Busy,
}

/// The body of a request, which may be empty.
pub struct RequestBody<'b> {
    body: Pin<&'b mut (dyn Body<Data = Bytes, Error = ()> + Send)>,
    head: &'b Parts,
    budget: &'b BodyBudget,
    clock: &'b Clock,
    before_waiting: &'b mut (dyn FnMut(usize) + Send),
    received: Vec<u8>,
    is_over_budget: bool,
}

impl BodyBudget {
    /// Creates an unused budget.
    pub fn new(registry: &MetricsRegistry) -> Self {
        Self {
            shares: FairShares::new(BUDGET, WITHOUT_KEY),
            codecs: FairShares::new(HTTP2_CODECS, HTTP2_CODECS),
            refused: registry.counter("scoregate_bodies_refused_total"),
        }
    }

    /// Takes memory for the codec of an HTTP/2 connection of this client. Returns `None` if the memory is used up and no network
    /// holds more of it than this client's network would.
    pub fn take_codec(&self, client: IpAddr) -> Option<Share> {
        self.codecs.take(Holder::Client(client), HTTP2_CODEC)
    }
}

impl<'b> RequestBody<'b> {
    /// The body after this head. `before_waiting` is called with the maximum size of the body when its memory has been
    /// reserved, before the gateway waits for it.
    pub fn new(
        body: Pin<&'b mut (dyn Body<Data = Bytes, Error = ()> + Send)>,
        head: &'b Parts,
        budget: &'b BodyBudget,
        clock: &'b Clock,
        before_waiting: &'b mut (dyn FnMut(usize) + Send),
    ) -> Self {
        Self {
            body,
            head,
            budget,
            clock,
            before_waiting,
            received: Vec::new(),
            is_over_budget: false,
        }
    }

    /// Whether the body has arrived completely.
    pub fn is_at_end(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Whether the stated size of the body exceeds `most`.
    pub fn exceeds(&self, most: usize) -> bool {
        self.body.size_hint().lower() > most as u64
    }

    /// Whether the body was refused because other bodies use the memory. The connection has to be closed then.
    pub fn is_over_budget(&self) -> bool {
        self.is_over_budget
    }

    /// Reads the body.
    pub async fn read(&mut self, most: usize, holder: Holder) -> Result<Vec<u8>, BodyFailure> {
        match self.arrived(most) {
            Some(read) => read,
            None => self.rest(most, holder).await,
        }
    }

    /// Reads the body if it has arrived.
    pub fn arrived(&mut self, most: usize) -> Option<Result<Vec<u8>, BodyFailure>> {
        self.collect(most, None).now_or_never()
    }

    /// Awaits the missing bytes. The memory for them is charged to `holder`.
    pub async fn rest(&mut self, most: usize, holder: Holder) -> Result<Vec<u8>, BodyFailure> {
        let clock = self.clock;
        let budget = self.budget;
        let stated = self.body.size_hint().exact().unwrap_or(0);
        let stated = usize::try_from(stated).unwrap_or(0);
        let body = self.received.capacity().max(self.received.len() + stated);
        let amount = READ_BUFFERS + 2 * size(self.head) + body;
        let read = match budget.shares.take(holder, amount) {
            Some(share) => {
                (self.before_waiting)(most);
                // All memory is reserved in one allocation: growing in steps would fragment the heap.
                self.received.reserve_exact(stated);
                let displaced = share.displaced();
                let collected = clock.within(BODY_TIMEOUT, self.collect(most, Some(share)));
                tokio::select! {
                    biased;
                    // The displacement is checked first, because the memory now belongs to another body.
                    () = displaced.notified() => Err(BodyFailure::Busy),
                    read = collected => read.unwrap_or(Err(BodyFailure::Slow)),
                }
            }
            None => Err(BodyFailure::Busy),
        };
        if read == Err(BodyFailure::Busy) {
            self.is_over_budget = true;
            budget.refused.increment(1);
        }
        read
    }

    /// Collects the bytes that arrive. The future can be dropped and the method called again.
    async fn collect(&mut self, most: usize, share: Option<Share>) -> Result<Vec<u8>, BodyFailure> {
        if self.exceeds(most) {
            return Err(BodyFailure::TooLarge);
        }
        while !self.body.is_end_stream()
            && let Some(frame) = self.body.frame().await
        {
            let frame = frame.map_err(|()| BodyFailure::Broken)?;
            let data = frame.into_data().map_err(|_| BodyFailure::Trailers)?;
            let length = self.received.len() + data.len();
            // If no length was stated, a body that is too large is detected only here.
            if length > most {
                return Err(BodyFailure::TooLarge);
            }
            self.reserve(length, most, share.as_ref())?;
            self.received.extend_from_slice(&data);
        }
        Ok(take(&mut self.received))
    }

    /// Reserves space for this many bytes in total. The space is doubled, so that a body is copied only a few times.
    /// Memory is charged before it is allocated.
    fn reserve(
        &mut self,
        length: usize,
        most: usize,
        share: Option<&Share>,
    ) -> Result<(), BodyFailure> {
        let capacity = self.received.capacity();
        if length <= capacity {
            return Ok(());
        }
        let rest = self.body.size_hint().upper();
        let whole = rest
            .and_then(|rest| usize::try_from(rest).ok())
            .map_or(most, |rest| length + rest);
        let grown = (2 * capacity).clamp(length, whole.max(length));
        if share.is_some_and(|share| !share.grow(grown - capacity)) {
            return Err(BodyFailure::Busy);
        }
        self.received.reserve_exact(grown - self.received.len());
        Ok(())
    }
}

/// The size of a head in bytes. The buffer that contains it is up to twice as large.
fn size(head: &Parts) -> usize {
    let target = head
        .uri
        .path_and_query()
        .map_or(0, |target| target.as_str().len());
    let fields = head.headers.iter();
    target
        + fields
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum::<usize>()
}
