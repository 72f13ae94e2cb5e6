//! The requests of an application on a day, merged from the hours of all gateways.

use super::{
    bit_set::BitSet,
    codec::{BadEvidence, Reader, Writer},
    hour::{HourCounts, HourEvidence},
};

/// Number of days for which evidence is kept.
pub const EVIDENCE_DAYS_KEPT: u32 = 40;
const HOURS: usize = 24;
const VERSION: u8 = 1;
/// The numbers of networks and agents that four bits can represent. Other numbers are rounded down.
const LEVELS: [u8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192];
/// The value stored as the first minute if no model was requested in an hour.
const NEVER: u8 = u8::MAX;

/// An hour of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourSummary {
    /// Requests for documents, encoded in steps of about a twelfth.
    requests: u8,
    /// Number of positions of requested models.
    pub models: u16,
    /// Number of networks, rounded down.
    pub networks: u8,
    /// Number of products in user agents, rounded down.
    pub agents: u8,
    first_minute: u8,
}

/// The requests of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayEvidence {
    /// The counts of the day.
    pub counts: HourCounts,
    /// Estimated number of documents that were delivered again within an hour.
    pub repeated: u32,
    /// The hours.
    pub hours: [HourSummary; HOURS],
    /// Number of positions of models in the catalogue.
    pub catalogue: u16,
    /// Number of positions of models that were requested on the day.
    pub models: u16,
    /// Networks of the day.
    pub networks: BitSet<4>,
    /// Products in the day's user agents.
    pub agents: BitSet<1>,
    /// Maximum number of networks within ten minutes.
    pub concurrent: u8,
    /// The requested models, until the day is compacted.
    requested: Option<Box<BitSet<32>>>,
}

impl HourSummary {
    const NONE: Self = Self {
        requests: 0,
        models: 0,
        networks: 0,
        agents: 0,
        first_minute: NEVER,
    };

    /// Number of requests for documents, with an error of at most 5 %.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 2^32"
    )]
    pub fn requests(&self) -> u32 {
        if self.requests == 0 {
            0
        } else {
            ((f64::from(self.requests) - 1.0) / 8.0).exp2().round() as u32
        }
    }

    /// The minute in which the first model was requested.
    pub fn first_minute(&self) -> Option<u8> {
        Some(self.first_minute).filter(|minute| *minute != NEVER)
    }

    fn add(&mut self, hour: &HourEvidence) {
        let counts = hour.counts();
        let requests = counts.delivered.saturating_add(counts.unchanged);
        self.requests = log_scale(self.requests().saturating_add(requests));
        self.models = self.models.max(hour.models().count());
        self.networks = self.networks.max(rounded_down(hour.networks().distinct()));
        self.agents = self.agents.max(rounded_down(hour.agents().distinct()));
        self.first_minute = self.first_minute.min(hour.first_minute().unwrap_or(NEVER));
    }
}

impl Default for DayEvidence {
    fn default() -> Self {
        Self {
            counts: HourCounts::default(),
            repeated: 0,
            hours: [HourSummary::NONE; HOURS],
            catalogue: 0,
            models: 0,
            networks: BitSet::EMPTY,
            agents: BitSet::EMPTY,
            concurrent: 0,
            requested: Some(Box::default()),
        }
    }
}

impl DayEvidence {
    /// Adds an hour, merged from all gateways. `catalogue` is the size of the catalogue in positions. If an hour is
    /// added in parts, it is underestimated.
    pub fn add(&mut self, hour: &HourEvidence, catalogue: u16) {
        let counts = &mut self.counts;
        let more = hour.counts();
        counts.delivered = counts.delivered.saturating_add(more.delivered);
        counts.unchanged = counts.unchanged.saturating_add(more.unchanged);
        counts.changed = counts.changed.saturating_add(more.changed);
        counts.limited = counts.limited.saturating_add(more.limited);
        counts.bytes = counts.bytes.saturating_add(more.bytes);
        self.repeated = self.repeated.saturating_add(hour.repeated());
        let index = usize::try_from(hour.hour()).unwrap_or_default() % HOURS;
        if let Some(summary) = self.hours.get_mut(index) {
            summary.add(hour);
        }
        self.catalogue = self.catalogue.max(catalogue);
        self.models = match &mut self.requested {
            Some(requested) => {
                requested.add_all(hour.models());
                requested.count()
            }
            None => self.models.max(hour.models().count()),
        };
        self.networks.add_all(hour.networks());
        self.agents.add_all(hour.agents());
        self.concurrent = self.concurrent.max(hour.concurrent());
    }

    /// Drops data that is needed only while hours are added.
    pub fn compact(&mut self) {
        self.requested = None;
    }

    /// Whether the day was compacted.
    pub const fn is_compact(&self) -> bool {
        self.requested.is_none()
    }

    /// The share of the catalogue that was requested on the day, from 0 to 1.
    pub fn share(&self) -> f64 {
        share(self.models, self.catalogue)
    }

    /// The share of the catalogue that was requested in an hour.
    pub fn share_of_hour(&self, hour: &HourSummary) -> f64 {
        share(hour.models, self.catalogue)
    }

    /// The encoding in the store, which is at most 200 bytes for a compacted day.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Writer::of(VERSION);
        let HourCounts {
            delivered,
            unchanged,
            changed,
            limited,
            bytes,
        } = self.counts;
        for count in [delivered, unchanged, changed, limited, self.repeated] {
            to.number(count);
        }
        to.long(bytes);
        for hour in &self.hours {
            to.bytes(&[
                hour.requests,
                level(hour.networks) << 4 | level(hour.agents),
                hour.first_minute,
            ]);
            to.short(hour.models);
        }
        to.short(self.catalogue);
        to.short(self.models);
        to.set(&self.networks);
        to.set(&self.agents);
        to.bytes(&[self.concurrent]);
        if let Some(requested) = &self.requested {
            to.set(requested);
        }
        to.finish()
    }

    /// Decodes the encoding.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadEvidence> {
        let mut from = Reader::of(bytes, VERSION)?;
        let [delivered, unchanged, changed, limited, repeated] = [
            from.number()?,
            from.number()?,
            from.number()?,
            from.number()?,
            from.number()?,
        ];
        let counts = HourCounts {
            delivered,
            unchanged,
            changed,
            limited,
            bytes: from.long()?,
        };
        let mut hours = [HourSummary::NONE; HOURS];
        for hour in &mut hours {
            let [requests, origins, first_minute] = from.bytes()?;
            let networks = number_of(origins >> 4);
            let agents = number_of(origins & 15);
            *hour = HourSummary {
                requests,
                models: from.short()?,
                networks,
                agents,
                first_minute,
            };
        }
        let catalogue = from.short()?;
        let models = from.short()?;
        let networks = from.set()?;
        let agents = from.set()?;
        let [concurrent] = from.bytes()?;
        // A compacted day has no models.
        let requested = if from.has_more() {
            Some(Box::new(from.set()?))
        } else {
            None
        };
        from.finish(Self {
            counts,
            repeated,
            hours,
            catalogue,
            models,
            networks,
            agents,
            concurrent,
            requested,
        })
    }
}

/// The share of models, corrected for models with the same position. The correction is larger for 2,000 models than for
/// 150.
fn share(models: u16, catalogue: u16) -> f64 {
    if catalogue == 0 {
        0.0
    } else {
        (corrected(models) / corrected(catalogue)).min(1.0)
    }
}

/// A measure of the number of models that occupy `set` positions.
fn corrected(set: u16) -> f64 {
    const POSITIONS: f64 = 2_048.0;
    -(1.0 - f64::from(set).min(POSITIONS - 1.0) / POSITIONS).ln()
}

/// Encodes a number with eight steps for each doubling.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and 255"
)]
fn log_scale(requests: u32) -> u8 {
    if requests == 0 {
        0
    } else {
        (f64::from(requests).log2() * 8.0).round().min(254.0) as u8 + 1
    }
}

fn level(number: u8) -> u8 {
    let above = LEVELS
        .iter()
        .position(|level| *level > number)
        .unwrap_or(LEVELS.len());
    u8::try_from(above.saturating_sub(1)).unwrap_or_default()
}

fn number_of(level: u8) -> u8 {
    LEVELS.get(usize::from(level)).copied().unwrap_or_default()
}

/// Rounds an estimate down to 8 bits. A full set counts as the maximum.
fn rounded_down(distinct: Option<u32>) -> u8 {
    let number = distinct
        .and_then(|number| u8::try_from(number).ok())
        .unwrap_or(u8::MAX);
    number_of(level(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;
    use crate::evidence::hour::Origin;
    use crate::evidence::mark::DocumentMark;

    const START: Wall = Wall::from_seconds(1_800_000_000 / 86_400 * 86_400);

    fn at(hour: u32, minute: u32) -> Wall {
        Wall::from_seconds(START.seconds() + u64::from(hour * 3_600 + minute * 60))
    }

    /// An hour in which these models were requested from one network.
    fn hour(hour: u32, models: std::ops::Range<u16>, network: u16) -> HourEvidence {
        let mut evidence = HourEvidence::of(HourEvidence::hour_of(at(hour, 0)));
        for model in models {
            let scattered = u32::from(model).wrapping_mul(2_654_435_761) ^ u32::from(model) << 11;
            let document = u16::try_from(crc32fast::hash(&scattered.to_le_bytes()) >> 16).unwrap();
            let mark = DocumentMark {
                model: Some(model),
                document,
            };
            evidence.delivered(mark, 3_000, false, at(hour, 7));
            evidence.unchanged(mark, at(hour, 8));
        }
        evidence.came_from(
            Origin {
                network,
                agent: network,
            },
            at(hour, 7),
        );
        evidence
    }

    #[test]
    fn two_gateways_see_one_sweep_of_the_catalogue() {
        let mut merged = hour(3, 0..60, 1);
        merged.add(&hour(3, 40..100, 2));
        let mut day = DayEvidence::default();
        day.add(&merged, 200);
        day.add(&hour(5, 90..120, 1), 200);
        assert!(
            day.models == 120 && (day.share() - 0.587).abs() < 0.001,
            "{day:?}"
        );
        assert_eq!(day.hours.map(|hour| hour.models)[2..6], [0, 100, 0, 30]);
        assert!((day.share_of_hour(&day.hours[3]) - 0.487).abs() < 0.001);
        assert_eq!(
            (
                day.hours[3].networks,
                day.hours[3].agents,
                day.networks.count()
            ),
            (2, 2, 2)
        );
        assert_eq!(
            (
                day.concurrent,
                day.hours[3].first_minute(),
                day.hours[4].first_minute()
            ),
            (2, Some(7), None)
        );
        assert!(
            day.hours[3].requests().abs_diff(240) < 12,
            "{:?}",
            day.hours[3]
        );
        assert_eq!(
            (day.counts.delivered, day.counts.unchanged, day.counts.bytes),
            (150, 150, 450_000)
        );
        assert!(
            day.repeated.abs_diff(20) < 10,
            "both gateways delivered 20 models: {}",
            day.repeated
        );
    }

    #[test]
    fn three_tenths_of_a_large_catalogue_are_not_taken_for_more() {
        for (catalogue, models) in [(145, 44), (791, 279), (1_277, 520), (2_048, 1)] {
            let day = DayEvidence {
                catalogue,
                models,
                ..DayEvidence::default()
            };
            assert!(day.share() < 0.31, "{}", day.share());
        }
        assert!(
            (DayEvidence {
                catalogue: 90,
                models: 95,
                ..DayEvidence::default()
            }
            .share()
                - 1.0)
                .abs()
                < 1e-9
        );
    }

    #[test]
    fn records_are_read_as_they_were_written_and_a_compact_day_is_small() {
        let seen = hour(3, 0..60, 1);
        assert_eq!(
            HourEvidence::decode(seen.hour(), &seen.encode()),
            Ok(seen.clone())
        );
        let mut day = DayEvidence::default();
        day.add(&seen, 200);
        assert_eq!(DayEvidence::decode(&day.encode()), Ok(day.clone()));
        day.compact();
        let bytes = day.encode();
        assert!(bytes.len() <= 200, "{}", bytes.len());
        assert_eq!(DayEvidence::decode(&bytes), Ok(day.clone()));
        day.add(&hour(9, 0..90, 1), 200);
        assert_eq!(
            (day.models, day.is_compact()),
            (90, true),
            "a late hour may be incomplete"
        );
        for cut in 0..bytes.len() {
            assert_eq!(DayEvidence::decode(&bytes[..cut]), Err(BadEvidence));
        }
    }

    #[test]
    fn an_application_in_use_takes_at_most_a_kilobyte() {
        // There can be two values: one in the account, for requests since the last recording, and one outside the account, for
        // earlier requests. Each has an allocator header.
        assert!(
            2 * (size_of::<HourEvidence>() + 32) <= 1_024,
            "{}",
            size_of::<HourEvidence>()
        );
    }

    #[test]
    fn numbers_are_rounded_down_to_what_is_stored() {
        for (number, stored) in [(0, 0), (5, 4), (50, 48), (191, 128), (255, 192)] {
            assert_eq!(number_of(level(number)), stored);
        }
        for requests in [1, 2, 10, 1_000, 5_000_000, 2_000_000_000] {
            let summary = HourSummary {
                requests: log_scale(requests),
                ..HourSummary::NONE
            };
            assert!(
                f64::from(summary.requests().abs_diff(requests)) <= f64::from(requests) * 0.05,
                "{requests}"
            );
        }
    }
}
