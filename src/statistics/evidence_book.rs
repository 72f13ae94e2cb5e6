//! Evidence of use that this process has collected but not yet recorded. Hours are recorded after they end, so a
//! process that is killed loses the evidence of the current hour. Addresses are not kept. Origins are hashed with the
//! key of the day from the store, and are not recorded if the key is missing.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
    sync::Arc,
};

use arc_swap::ArcSwapOption;
use foldhash::quality::FixedState;
use http::HeaderValue;
use parking_lot::Mutex;

use scoregate_base::{
    clock::{Day, Wall},
    evidence::{
        DayEvidence, HourEvidence, Origin,
        judgement::{Advice, advice},
    },
    keys::ApplicationId,
};
use scoregate_store::{HourRecord, Store, StoreResult};

/// Number of records per store call.
// This limits the size of a statement, and the time for which the lock is held to copy the records.
const AT_ONCE: usize = 500;
/// Maximum number of hours that are kept while the store is unreachable.
// This limits memory use during an outage of the store.
const MOST_HOURS: u32 = 3;
/// Minimum number of documents in an hour for advice.
const ENOUGH_FOR_ADVICE: u32 = 500;

/// Evidence by hour and application.
#[derive(Default)]
pub struct EvidenceBook {
    hours: Mutex<BTreeMap<(u32, ApplicationId), Box<HourEvidence>>>,
    /// The key of the day's sketches. It is read without a lock, because it is needed often: behind a proxy, most
    /// requests have a different origin than the previous one.
    sketch_key: ArcSwapOption<(Day, u64)>,
}

impl EvidenceBook {
    /// Adds the evidence of an account.
    pub fn add(&self, application: ApplicationId, evidence: Vec<HourEvidence>) {
        let mut hours = self.hours.lock();
        for hour in evidence {
            hours
                .entry((hour.hour(), application))
                .or_insert_with(|| Box::new(HourEvidence::of(hour.hour())))
                .add(&hour);
        }
    }

    /// Gets the key of the day from the store, unless it is known.
    pub async fn ensure_key(&self, store: &Store, day: Day) -> StoreResult<()> {
        if self
            .sketch_key
            .load()
            .as_ref()
            .is_none_or(|key| key.0 != day)
        {
            // The store keeps the random number that the first gateway sends, so all gateways use the same key for a day.
            let key = store
                .sketch_key(day, RandomState::default().hash_one(day))
                .await?;
            self.sketch_key.store(Some(Arc::new((day, key))));
        }
        Ok(())
    }

    /// Records the hours before `until`. If the store is unreachable, the next call retries the last few hours. Calls
    /// must not overlap, and must not be made while requests can still be added to these hours.
    pub async fn record<F: Future<Output = StoreResult<()>>>(
        &self,
        until: u32,
        recording: impl Fn(Vec<HourRecord>) -> F,
    ) -> StoreResult<()> {
        loop {
            let batch = self.ended(until);
            if batch.is_empty() {
                return Ok(());
            }
            let keys: Vec<_> = batch
                .iter()
                .map(|hour| (hour.evidence.hour(), hour.application))
                .collect();
            let recorded = recording(batch).await;
            // The book is not locked during the call. Only one call runs at a time, and no request adds to these hours,
            // so the batch has not changed.
            let mut hours = self.hours.lock();
            if recorded.is_err() {
                hours.retain(|(hour, _), _| hour.saturating_add(MOST_HOURS) >= until);
                return recorded;
            }
            for key in &keys {
                hours.remove(key);
            }
        }
    }

    fn ended(&self, until: u32) -> Vec<HourRecord> {
        let hours = self.hours.lock();
        let mut records = Vec::new();
        for ((_, application), evidence) in hours
            .iter()
            .take_while(|((hour, _), _)| *hour < until)
            .take(AT_ONCE)
        {
            records.push(HourRecord {
                application: *application,
                evidence: HourEvidence::clone(evidence),
            });
        }
        records
    }

    /// Advice based on the requests of an hour. There is no advice if there were few requests.
    pub fn advice(&self, application: ApplicationId, hour: u32) -> Vec<String> {
        let hours = self.hours.lock();
        let evidence = hours
            .get(&(hour, application))
            .filter(|hour| hour.counts().delivered >= ENOUGH_FOR_ADVICE);
        let Some(evidence) = evidence else {
            return Vec::new();
        };
        let mut day = DayEvidence::default();
        day.add(evidence, 0);
        drop(hours);
        advice(&[day]).into_iter().map(Advice::sentence).collect()
    }

    /// The origin of a request; `None` if the day's sketch key is unknown.
    pub fn origin(&self, address: IpAddr, agent: Option<&HeaderValue>, at: Wall) -> Option<Origin> {
        let key = self.sketch_key.load();
        let (_, key) = **key.as_ref().filter(|key| key.0 == at.day())?;
        let positions = FixedState::with_seed(key);
        let network = match address.to_canonical() {
            IpAddr::V4(address) => u64::from(address.to_bits() >> 8),
            IpAddr::V6(address) => {
                // The extra bit distinguishes IPv6 networks from IPv4 networks.
                u64::try_from(address.to_bits() >> 80).unwrap_or_default() | 1 << 48
            }
        };
        let agent = agent.map_or(&b""[..], |agent| product(agent.as_bytes()));
        Some(Origin {
            network: top_bits(positions.hash_one(network)),
            agent: top_bits(positions.hash_one(agent)),
        })
    }
}

/// The first product of a user agent, without the version.
fn product(agent: &[u8]) -> &[u8] {
    agent
        .split(|byte| b"/ (".contains(byte))
        .next()
        .unwrap_or_default()
}

fn top_bits(hash: u64) -> u16 {
    u16::try_from(hash >> 48).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use crate::statistics::evidence_book::*;
    use scoregate_base::evidence::DocumentMark;
    use scoregate_store::StoreError;

    const NOON: Wall = Wall::from_seconds(1_763_769_600 + 12 * 3_600);

    /// Records the hours before `until`, and returns them.
    async fn recorded(book: &EvidenceBook, until: u32) -> Vec<HourRecord> {
        let recorded = Mutex::new(Vec::new());
        let recording = |hours: Vec<HourRecord>| {
            recorded.lock().extend(hours);
            ready(Ok(()))
        };
        book.record(until, recording).await.unwrap();
        recorded.into_inner()
    }

    /// Evidence of one document.
    fn seen(hour: u32) -> Vec<HourEvidence> {
        let mut evidence = HourEvidence::of(hour);
        evidence.delivered(
            DocumentMark {
                model: Some(7),
                document: 8,
            },
            100,
            false,
            NOON,
        );
        vec![evidence]
    }

    #[tokio::test]
    async fn an_hour_is_recorded_as_a_whole_once_it_has_ended() {
        let book = EvidenceBook::default();
        let one = ApplicationId::mint().unwrap();
        let other = ApplicationId::mint().unwrap();
        for (application, hour) in [(one, 7), (one, 7), (other, 7), (one, 8)] {
            book.add(application, seen(hour));
        }
        assert!(recorded(&book, 7).await.is_empty());
        let mut delivered = recorded(&book, 8).await;
        assert!(recorded(&book, 8).await.is_empty());
        delivered.sort_by_key(|record| record.application != one);
        let counted = delivered
            .iter()
            .map(|record| (record.application, record.evidence.counts().delivered));
        assert_eq!(counted.collect::<Vec<_>>(), [(one, 2), (other, 1)]);
    }

    #[tokio::test]
    async fn the_last_hours_are_kept_while_the_store_is_away() {
        let book = EvidenceBook::default();
        let away = |_| {
            ready(Err(StoreError::Unavailable {
                doing: "record evidence",
                reason: "away".into(),
            }))
        };
        let application = ApplicationId::mint().unwrap();
        for hour in 10..16 {
            book.add(application, seen(hour));
            assert!(book.record(hour + 1, away).await.is_err());
        }
        let hours: Vec<u32> = recorded(&book, 16)
            .await
            .iter()
            .map(|record| record.evidence.hour())
            .collect();
        assert_eq!(hours, [13, 14, 15]);
    }

    #[tokio::test]
    async fn origins_are_recorded_by_network_and_product_once_the_key_of_the_day_is_known() {
        let book = EvidenceBook::default();
        let origin = |address: &str, agent: &'static str| {
            book.origin(
                address.parse().unwrap(),
                Some(&HeaderValue::from_static(agent)),
                NOON,
            )
        };
        assert_eq!(origin("192.0.2.1", "curl/8.1"), None);
        book.sketch_key.store(Some(Arc::new((NOON.day(), 7))));
        let one = origin("192.0.2.1", "curl/8.1");
        assert!(one.is_some());
        assert_eq!(one, origin("192.0.2.200", "curl/8.2 (x86_64)"));
        assert_eq!(one, origin("::ffff:192.0.2.7", "curl"));
        let there = |address| origin(address, "curl").unwrap().network;
        assert_eq!(there("2001:db8:1::1"), there("2001:db8:1:ffff::2"));
        assert_ne!(
            origin("192.0.2.1", "curl").unwrap().agent,
            origin("192.0.2.1", "wget").unwrap().agent
        );
    }
}
