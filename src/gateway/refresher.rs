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
use super::refreshes::Met;

/// How many refreshes are wished for at once; how many the backend is asked is its protection's business.
const AT_ONCE: usize = 4;

impl Larder {
    /// Keeps documents current until `stop`.
    pub async fn keep_current(self: Arc<Self>, stop: CancellationToken) {
        let keep = async {
            loop {
                let next = self.refreshes.begun().await.next();
                tokio::select! {
                    biased;
                    met = self.refreshes.is_met() => self.follow(met).await,
                    () = self.clock.sleep_until(next) => self.look_for_a_refresh().await,
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = keep => {}
        }
    }

    /// Asks once, and does what follows from the answer.
    async fn look_for_a_refresh(self: &Arc<Self>) {
        let Some((key, before)) = self.in_use().into_iter().next() else {
            // Nobody asks for anything: whoever comes has what he asks for refreshed.
            let now = self.clock.now().mono;
            return self.refreshes.step(|rhythm| rhythm.in_vain(now));
        };
        let after = self.ask_about(&key).await;
        let at = self.clock.now().mono;
        match after {
            Some(stored) if !stored.document.is_like(&before.document) => {
                self.follow(Met { document: key.as_ref().clone(), stored, at }).await;
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
        self.refreshes.saw_one(at);
        self.instruments.refreshed();
        // A model that was not there may be there now.
        self.absences.forget(|_| true);
        let expected = if stored.due > at { stored.due } else { at.plus(self.keeping.load().cadence) };
        self.refreshes.step(|rhythm| rhythm.refreshed(expected, at));
        // It was asked about, and dated, before anybody knew. Its label tells the next process of the refresh.
        self.cache.replace(&document, &stored, stored.current(at, expected));
        self.keepsakes.note(&document);
        tracing::debug!(%document, "the backend has refreshed");
        self.refresh_what_is_in_use(at).await;
    }

    async fn refresh_what_is_in_use(self: &Arc<Self>, refreshed_at: Mono) {
        let in_use = self.in_use();
        self.cache.all().for_each(|(_, stored)| stored.fade());
        let outdated = in_use.into_iter().filter(|(_, stored)| stored.confirmed < refreshed_at);
        let refresh = |(key, _): (Arc<DocumentKey>, Arc<Stored>)| async move {
            drop(self.ask_about(&key).await);
        };
        stream::iter(outdated).for_each_concurrent(AT_ONCE, refresh).await;
    }

    /// What was asked for of late and follows the backend, most used first.
    fn in_use(&self) -> Vec<(Arc<DocumentKey>, Arc<Stored>)> {
        let keeping = self.keeping.load();
        let follows = |key: &DocumentKey| keeping.life(key.route).follows_the_backend();
        let is_wanted = |(key, stored): &(Arc<DocumentKey>, Arc<Stored>)| stored.uses() > 0 && follows(key);
        let mut used: Vec<_> = self.cache.all().filter(is_wanted).collect();
        used.sort_by_key(|(_, stored)| Reverse(stored.uses()));
        used
    }
}
