//! Keeps what is in use current: asks the backend, in its rhythm, whether it has refreshed, and if it has, has what is in
//! use refreshed, most used first, while the old documents are served.
//!
//! One question stands for all: it is about the document that is used most, and conditional where the backend allows it.
//! Once a refresh is overdue, callers have documents asked about too; a change that comes that way is as good a sign.
//! Not for: documents that nobody asks for; whoever comes for one has it refreshed.

use std::cmp::Reverse;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::cache::Stored;
use crate::clock::Mono;
use crate::routes::DocumentKey;

use super::larder::Larder;
use super::refresh_schedule::Met;

/// How many refreshes are wished for at once; how many the backend is asked is its protection's business.
const AT_ONCE: usize = 4;

impl Larder {
    /// Keeps documents current until `stop`.
    pub async fn keep_current(self: Arc<Self>, stop: CancellationToken) {
        let keep = async {
            loop {
                let next = self.refreshes.begun().await.next();
                let met = tokio::select! {
                    biased;
                    met = self.refreshes.is_met() => Some(met),
                    () = self.clock.sleep_until(next) => None,
                };
                let _at_work = self.refreshes.at_work();
                match met {
                    Some(met) => self.follow(met).await,
                    None => self.look_for_a_refresh().await,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = keep => {}
        }
    }

    /// Whether a refresh is being looked for or followed. For tests.
    pub fn is_at_work(&self) -> bool {
        self.refreshes.is_at_work()
    }

    /// Asks once, and does what follows from the answer.
    async fn look_for_a_refresh(self: &Arc<Self>) {
        let Some((key, before)) = self.aside(|larder| larder.in_use().into_iter().next()).await.flatten()
        else {
            // Nobody asks for anything: whoever comes has what he asks for refreshed.
            let now = self.clock.now().mono;
            return self.refreshes.step(|rhythm| rhythm.in_vain(now));
        };
        let after = self.ask_about(&key).await;
        let at = self.clock.now().mono;
        match after {
            Some(stored) if !stored.document.is_like(&before.document) => {
                self.follow(Met { document: key, stored, at }).await;
            }
            after => self.refreshes.step(|rhythm| match after.as_ref().map(|after| after.due) {
                // It says when it will refresh, and that is believed.
                Some(later) if later > rhythm.expected().max(at) => rhythm.refreshed(later, at),
                Some(_) | None => rhythm.in_vain(at),
            }),
        }
    }

    /// The backend was seen to have refreshed: everything that was confirmed before is outdated, and what is in use is
    /// refreshed.
    async fn follow(self: &Arc<Self>, Met { document, stored, at }: Met) {
        self.outdate(at);
        let expected = if stored.due > at { stored.due } else { at.plus(self.keeping.load().cadence) };
        self.refreshes.step(|rhythm| rhythm.refreshed(expected, at));
        // It was asked about, and dated, before anybody knew. Its label tells the next process of the refresh.
        self.cache.replace(&document, &stored, stored.current(at, expected));
        self.keepsakes.note(&document);
        tracing::debug!(%document, "the backend has refreshed");
        self.refresh_what_is_in_use(at).await;
    }

    /// The backend has refreshed before its time, and said so itself: what is in use is refreshed. When its next refresh is
    /// expected stays as it is.
    pub async fn follow_an_early_refresh(self: &Arc<Self>) {
        let at = self.clock.now().mono;
        self.outdate(at);
        self.refresh_what_is_in_use(at).await;
    }

    /// Everything that was confirmed before is outdated.
    fn outdate(&self, at: Mono) {
        self.refreshes.saw_one(at);
        self.instruments.refreshed();
        // A model that was not there may be there now.
        self.absences.forget(|_| true);
    }

    async fn refresh_what_is_in_use(self: &Arc<Self>, refreshed_at: Mono) {
        let in_use = self.aside(|larder| {
            let in_use = larder.in_use();
            larder.cache.all().iter().for_each(|(_, stored)| stored.fade());
            in_use
        });
        let in_use = in_use.await.unwrap_or_default().into_iter();
        let outdated = in_use.filter(|(_, stored)| stored.confirmed < refreshed_at);
        let refresh = |(key, _): (DocumentKey, Arc<Stored>)| async move {
            drop(self.ask_about(&key).await);
        };
        stream::iter(outdated).for_each_concurrent(AT_ONCE, refresh).await;
    }

    /// Has a look at everything, which takes too long for a thread that serves. `None` if that panicked.
    async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let larder = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || look(&larder)).await;
        looked.inspect_err(|error| tracing::error!(%error, "looking at all documents failed")).ok()
    }

    /// What was asked for of late and follows the backend, most used first.
    fn in_use(&self) -> Vec<(DocumentKey, Arc<Stored>)> {
        let keeping = self.keeping.load();
        let follows = |key: &DocumentKey| keeping.life(key.route).follows_the_backend();
        let is_wanted = |(key, stored): &(DocumentKey, Arc<Stored>)| stored.uses() > 0 && follows(key);
        let mut used: Vec<_> = self.cache.all().into_iter().filter(is_wanted).collect();
        used.sort_by_key(|(_, stored)| Reverse(stored.uses()));
        used
    }
}
