//! The requests of an application at one gateway in an hour.

use super::{
    bit_set::BitSet,
    codec::{BadEvidence, Reader, Writer},
    mark::DocumentMark,
};
use crate::clock::Wall;

const MILLIS_A_MINUTE: u64 = 60_000;
pub const MILLIS_AN_HOUR: u64 = 60 * MILLIS_A_MINUTE;
/// Networks that were used within a window of this length count as concurrent.
const WINDOW_MINUTES: u64 = 10;
/// The value of `first_minute` if no model was requested.
const NEVER: u8 = u8::MAX;
const VERSION: u8 = 1;

/// Counts of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HourCounts {
    /// Documents delivered.
    pub delivered: u32,
    /// 304 responses.
    pub unchanged: u32,
    /// Documents delivered in response to conditional requests.
    pub changed: u32,
    /// Requests refused because of a limit.
    pub limited: u32,
    /// Total size of the delivered documents.
    pub bytes: u64,
}

/// The origin of a request, as positions of keyed hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The position of the network, which is a /24 or /48.
    pub network: u16,
    /// The position of the product in the user agent.
    pub agent: u16,
}

/// The requests of an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourEvidence {
    /// Hours since the epoch.
    hour: u32,
    counts: HourCounts,
    /// Delivered documents, for an estimate of how many were delivered repeatedly.
    documents: BitSet<8>,
    models: BitSet<32>,
    networks: BitSet<4>,
    agents: BitSet<1>,
    /// The window of `window_networks`.
    window: u8,
    window_networks: BitSet<4>,
    /// Maximum number of networks within a window.
    concurrent: u8,
    /// The minute in which the first model was requested.
    first_minute: u8,
}

impl HourEvidence {
    /// The number of the hour that contains this time.
    #[inline]
    pub fn hour_of(at: Wall) -> u32 {
        u32::try_from(at.millis() / MILLIS_AN_HOUR).unwrap_or(u32::MAX)
    }

    /// Evidence of an hour without requests.
    pub const fn of(hour: u32) -> Self {
        Self {
            hour,
            counts: HourCounts {
                delivered: 0,
                unchanged: 0,
                changed: 0,
                limited: 0,
                bytes: 0,
            },
            documents: BitSet::EMPTY,
            models: BitSet::EMPTY,
            networks: BitSet::EMPTY,
            agents: BitSet::EMPTY,
            window: 0,
            window_networks: BitSet::EMPTY,
            concurrent: 0,
            first_minute: NEVER,
        }
    }

    /// Hours since the epoch.
    pub const fn hour(&self) -> u32 {
        self.hour
    }

    /// The counts.
    pub const fn counts(&self) -> &HourCounts {
        &self.counts
    }

    /// Counts a delivered document of this size.
    #[inline]
    pub fn delivered(&mut self, mark: DocumentMark, bytes: u32, is_conditional: bool, at: Wall) {
        self.counts.delivered = self.counts.delivered.saturating_add(1);
        self.counts.changed = self
            .counts
            .changed
            .saturating_add(u32::from(is_conditional));
        self.counts.bytes = self.counts.bytes.saturating_add(u64::from(bytes));
        self.documents.insert(mark.document);
        self.asked_for(mark, at);
    }

    /// Counts a 304.
    #[inline]
    pub fn unchanged(&mut self, mark: DocumentMark, at: Wall) {
        self.counts.unchanged = self.counts.unchanged.saturating_add(1);
        self.asked_for(mark, at);
    }

    /// Counts a request that was refused because of a limit.
    pub fn limited(&mut self) {
        self.counts.limited = self.counts.limited.saturating_add(1);
    }

    #[inline]
    fn asked_for(&mut self, mark: DocumentMark, at: Wall) {
        if let Some(model) = mark.model {
            self.models.insert(model);
            if self.first_minute == NEVER {
                self.first_minute = minute_of_hour(at);
            }
        }
    }

    /// The number of the window that contains this time. The origin of a connection is counted once per window.
    pub fn window_of(at: Wall) -> u32 {
        u32::try_from(at.millis() / (WINDOW_MINUTES * MILLIS_A_MINUTE)).unwrap_or(u32::MAX)
    }

    /// Counts the origin of a request.
    pub fn came_from(&mut self, origin: Origin, at: Wall) {
        self.networks.insert(origin.network);
        self.agents.insert(origin.agent);
        let window = minute_of_hour(at) / 10;
        if window != self.window {
            (self.window, self.window_networks) = (window, BitSet::EMPTY);
        }
        self.window_networks.insert(origin.network);
        let networks = self.window_networks.distinct().unwrap_or(u32::MAX);
        self.concurrent = self
            .concurrent
            .max(u8::try_from(networks).unwrap_or(u8::MAX));
    }

    /// Adds evidence of the same hour that another gateway recorded, or that was recorded later.
    pub fn add(&mut self, other: &Self) {
        let counts = &mut self.counts;
        let more = &other.counts;
        counts.delivered = counts.delivered.saturating_add(more.delivered);
        counts.unchanged = counts.unchanged.saturating_add(more.unchanged);
        counts.changed = counts.changed.saturating_add(more.changed);
        counts.limited = counts.limited.saturating_add(more.limited);
        counts.bytes = counts.bytes.saturating_add(more.bytes);
        self.documents.add_all(&other.documents);
        self.models.add_all(&other.models);
        self.networks.add_all(&other.networks);
        self.agents.add_all(&other.agents);
        match self.window.cmp(&other.window) {
            std::cmp::Ordering::Less => {
                (self.window, self.window_networks) = (other.window, other.window_networks);
            }
            std::cmp::Ordering::Equal => self.window_networks.add_all(&other.window_networks),
            std::cmp::Ordering::Greater => {}
        }
        let networks = self.window_networks.distinct().unwrap_or(u32::MAX);
        let networks = u8::try_from(networks).unwrap_or(u8::MAX);
        self.concurrent = self.concurrent.max(other.concurrent).max(networks);
        self.first_minute = self.first_minute.min(other.first_minute);
    }

    /// Estimated number of documents delivered again within this hour. Documents with changed content are not counted.
    pub fn repeated(&self) -> u32 {
        let all = self.counts.delivered.saturating_sub(self.counts.changed);
        self.documents
            .distinct()
            .map_or(0, |distinct| all.saturating_sub(distinct))
    }

    /// The models that were requested.
    pub const fn models(&self) -> &BitSet<32> {
        &self.models
    }

    /// The networks.
    pub const fn networks(&self) -> &BitSet<4> {
        &self.networks
    }

    /// The products in user agents.
    pub const fn agents(&self) -> &BitSet<1> {
        &self.agents
    }

    /// Maximum number of networks within ten minutes.
    pub const fn concurrent(&self) -> u8 {
        self.concurrent
    }

    /// The minute in which the first model was requested.
    pub fn first_minute(&self) -> Option<u8> {
        Some(self.first_minute).filter(|minute| *minute != NEVER)
    }

    /// The encoding in the store, where the hour is a separate column.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::of(VERSION);
        let HourCounts {
            delivered,
            unchanged,
            changed,
            limited,
            bytes,
        } = self.counts;
        for count in [delivered, unchanged, changed, limited] {
            to.number(count);
        }
        to.long(bytes);
        to.set(&self.documents);
        to.set(&self.models);
        to.set(&self.networks);
        to.set(&self.agents);
        to.set(&self.window_networks);
        to.bytes(&[self.window, self.concurrent, self.first_minute]);
        to.finish()
    }

    /// Decodes the encoding.
    pub fn decode(hour: u32, bytes: &[u8]) -> Result<Self, BadEvidence> {
        let mut from = Reader::of(bytes, VERSION)?;
        let counts = HourCounts {
            delivered: from.number()?,
            unchanged: from.number()?,
            changed: from.number()?,
            limited: from.number()?,
            bytes: from.long()?,
        };
        let documents = from.set()?;
        let models = from.set()?;
        let networks = from.set()?;
        let agents = from.set()?;
        let window_networks = from.set()?;
        let [window, concurrent, first_minute] = from.bytes()?;
        let read = Self {
            hour,
            counts,
            documents,
            models,
            networks,
            agents,
            window,
            window_networks,
            concurrent,
            first_minute,
        };
        from.finish(read)
    }
}

fn minute_of_hour(at: Wall) -> u8 {
    u8::try_from(at.millis() / MILLIS_A_MINUTE % 60).unwrap_or_default()
}
