//! Tests that no fetch waits for the store of shared documents while it is unreachable.

use std::sync::atomic::AtomicU32;

use super::*;
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::{ClaimState, SharedDocumentState, StoreFuture};

const TIMEOUT: Duration = Duration::from_secs(2);

/// A store that either replies or lets every call time out.
struct ShakyStore {
    is_away: AtomicBool,
    calls: AtomicU32,
    clock: Clock,
}

impl ShakyStore {
    fn reply<T: Send + 'static>(&self, value: impl FnOnce(EngineClock) -> T) -> StoreFuture<'_, T> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let is_away = self.is_away.load(Ordering::Relaxed);
        let clock = EngineClock {
            at: self.clock.now().wall,
            sent: self.clock.mono(),
            received: self.clock.mono(),
        };
        let value = value(clock);
        Box::pin(async move {
            if !is_away {
                return Ok(value);
            }
            self.clock.sleep(TIMEOUT).await;
            Err(StoreError::Unavailable {
                doing: "share",
                reason: "away".into(),
            })
        })
    }
}

impl SharedDocuments for ShakyStore {
    fn state(&self, _: &str) -> StoreFuture<'_, SharedDocumentState> {
        self.reply(|clock| SharedDocumentState {
            number: 0,
            claim: ClaimState::Free,
            published: None,
            refresh: None,
            clock,
        })
    }

    fn claim(
        &self,
        _: &str,
        after: u64,
        _: Duration,
    ) -> StoreFuture<'_, Option<(u64, EngineClock)>> {
        self.reply(move |clock| Some((after + 1, clock)))
    }

    fn content(&self, _: &str, _: u64) -> StoreFuture<'_, Option<Bytes>> {
        self.reply(|_| None)
    }

    fn publish(&self, _: &str, _: Publication) -> StoreFuture<'_, bool> {
        self.reply(|_| true)
    }

    fn release(&self, _: &str, _: u64, _: Option<Duration>) -> StoreFuture<'_, ()> {
        self.reply(|_| ())
    }

    fn withdraw(&self, _: Vec<String>) -> StoreFuture<'_, ()> {
        self.reply(|_| ())
    }

    fn agree(
        &self,
        refresh: AgreedRefresh,
        _: Wall,
        _: Option<(String, u64)>,
    ) -> StoreFuture<'_, AgreedRefresh> {
        self.reply(move |_| refresh)
    }

    fn refresh(&self) -> StoreFuture<'_, (Option<AgreedRefresh>, EngineClock)> {
        self.reply(|clock| (None, clock))
    }

    fn published(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn after_a_failure_no_fetch_waits_for_the_store_until_an_attempt_in_the_background_succeeds()
{
    let (clock, manual) = Clock::manual(Wall::from_seconds(1_000_000));
    let store = Arc::new(ShakyStore {
        is_away: true.into(),
        calls: AtomicU32::new(0),
        clock: clock.clone(),
    });
    let shared = Arc::clone(&store);
    let fetches = SharedFetches {
        shared,
        backend: "backend".into(),
        claim_duration: Duration::from_secs(30),
    };
    let registry = MetricsRegistry::default();
    let instruments = DocumentInstruments::new(&registry, &[]);
    let fleet = FleetDocuments::new(fetches, clock, Arc::new(instruments));
    let need = FleetNeed::default();
    let turn = || fleet.turn("document", &need, None);
    let calls = || store.calls.load(Ordering::Relaxed);

    let failing = async { manual.advance(TIMEOUT) };
    let (turn_of_first, ()) = tokio::join!(turn(), failing);
    assert!(matches!(turn_of_first, FleetTurn::Alone));
    assert_eq!(calls(), 1, "the first fetch waits");
    for _ in 0..3 {
        manual.advance(Duration::from_mins(1));
        assert!(matches!(turn().await, FleetTurn::Alone));
    }
    assert_eq!(calls(), 1, "other fetches make no call");

    let failing = async { manual.advance(TIMEOUT) };
    tokio::join!(fleet.ask_again(), failing);
    assert!(matches!(turn().await, FleetTurn::Alone));
    store.is_away.store(false, Ordering::Relaxed);
    assert!(matches!(turn().await, FleetTurn::Alone));
    assert_eq!(calls(), 2);
    fleet.ask_again().await;
    assert!(matches!(turn().await, FleetTurn::Claimed(_)));
    fleet.ask_again().await;
    assert_eq!(calls(), 5, "a store that replies is not probed");
}
