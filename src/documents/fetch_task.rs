//! One errand: a fetch made, and what it brought stored, or remembered as not to be had.
//!
//! Runs in a task of its own. Not for: who has it made, nor who waits for it (`larder`).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::cache::freshness::Known;
use crate::cache::{Content, Document, Label, Rhythm, Stored, Ticket};
use crate::clock::{Mono, Now, Wall};
use crate::upstream::{Failure, Fetched, Question};

use super::fetch_priority::Note;
use super::larder::{Landing, Larder, NoDocument};
use super::refresh_schedule::Met;
use crate::instruments::FetchEnd;

/// So long a fetch that failed is not made again, however many ask. Short: the next good answer has to be seen soon.
const FAILED_FOR: Duration = Duration::from_millis(500);
/// So long a model that the backend does not know is not asked for again.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// A question to the backend that was answered.
struct Inquiry {
    /// What was stored when it was asked.
    before: Option<Arc<Stored>>,
    asked: Mono,
    answered: Now,
}

impl Larder {
    /// Makes one fetch. One that panics is a failure like others: it wakes those who wait, and is remembered.
    pub(super) async fn run(&self, ticket: Ticket<Landing, Note>) {
        let key = ticket.key().clone();
        if AssertUnwindSafe(self.fly(ticket)).catch_unwind().await.is_err() {
            self.instruments.panicked();
            tracing::error!(document = %key, "a fetch panicked");
            let (failure, now) = (Failure::Invalid("reading it panicked".into()), self.clock.now());
            self.past.failed(&key, &failure, now.wall);
            self.absences.remember(key, NoDocument::Failed(failure), now.mono.plus(FAILED_FOR));
        }
    }

    /// Brings a flight to its end.
    async fn fly(&self, ticket: Ticket<Landing, Note>) {
        let before = self.cache.get(ticket.key());
        let started = self.clock.now();
        let known = before.as_ref().map(|stored| stored.document.source());
        let Note { urgent, trace } = ticket.note();
        let question = Question { key: ticket.key(), known, trace: trace.as_ref() };
        let fetched = self.upstream.fetch(question, urgent).await;
        let now = self.clock.now();
        let inquiry = Inquiry { before, asked: started.mono, answered: now };
        let landing = match fetched {
            Ok(Fetched::Content { content, next_refresh }) => {
                self.store(&ticket, content, next_refresh, inquiry).await
            }
            Ok(Fetched::Unchanged { next_refresh }) => match &inquiry.before {
                Some(before) => Ok(self.confirm(&ticket, before.document.clone(), next_refresh, &inquiry)),
                None => {
                    Err(NoDocument::Failed(Failure::Invalid("it says unchanged of what is not known".into())))
                }
            },
            Ok(Fetched::Nothing { content, next_refresh })
                if self.is_known(ticket.key(), inquiry.before.is_some()) =>
            {
                self.store(&ticket, content, next_refresh, inquiry).await
            }
            Ok(Fetched::NoSuchModel | Fetched::Nothing { .. }) => {
                // The backend's word that a model is gone is an answer, not a failure: the old document goes too.
                ticket.while_current(|| self.cache.remove(ticket.key()));
                self.keepsakes.note(ticket.key());
                Err(NoDocument::NoSuchModel)
            }
            Err(failure) => Err(NoDocument::Failed(failure)),
        };
        let end = match &landing {
            Ok(_) => FetchEnd::Good,
            Err(NoDocument::Failed(failure)) => FetchEnd::of(failure),
            Err(NoDocument::NoSuchModel | NoDocument::Unlisted) => FetchEnd::NoSuchModel,
        };
        self.instruments.fetched(end, now.mono.since(started.mono), ticket.passengers());
        match &landing {
            Ok(_) | Err(NoDocument::NoSuchModel) => self.past.went_well(now.wall),
            Err(NoDocument::Failed(_) | NoDocument::Unlisted) => {}
        }
        if let Err(why) = &landing {
            self.miss(&ticket, why, now);
        }
        ticket.land(landing);
    }

    /// Remembers that a document cannot be had. One that was not asked for costs the backend nothing, and may be asked
    /// for as soon as the backend may.
    fn miss(&self, ticket: &Ticket<Landing, Note>, why: &NoDocument, now: Now) {
        let key = ticket.key();
        let holds_for = match why {
            NoDocument::NoSuchModel => UNKNOWN_FOR,
            NoDocument::Unlisted | NoDocument::Failed(Failure::Resting(_) | Failure::Crowded) => return,
            NoDocument::Failed(failure) => {
                let endpoint = key.route.endpoint().name;
                tracing::warn!(endpoint, document = %key, %failure, "a fetch failed");
                self.past.failed(key, failure, now.wall);
                FAILED_FOR
            }
        };
        let until = now.mono.plus(holds_for);
        ticket.while_current(|| self.absences.remember(key.clone(), why.clone(), until));
    }

    /// Builds a document from what came and stores it. Compression takes a while, so it is done aside, by few at once.
    async fn store(
        &self,
        ticket: &Ticket<Landing, Note>,
        content: Content,
        stated: Option<Wall>,
        inquiry: Inquiry,
    ) -> Landing {
        let before = inquiry.before.clone();
        if let Some(before) = before.as_ref().filter(|before| before.is_doubtfully_followed_by(&content)) {
            ticket.while_current(|| self.cache.put(ticket.key().clone(), Arc::new(before.doubted())));
            let reason = "it is empty, and what it sent before was not: that is believed the second time";
            return Err(NoDocument::Failed(Failure::Invalid(reason.into())));
        }
        let (label_key, license) = (ticket.key().clone(), self.keeping.load().license.clone());
        let failed = |reason: String| NoDocument::Failed(Failure::Invalid(reason));
        let turn = self.builders.acquire().await.map_err(|error| failed(error.to_string()))?;
        let built = tokio::task::spawn_blocking(move || {
            let label = Label { key: &label_key, license: &license };
            Document::build(content, &label, before.as_deref().map(|stored| &stored.document))
        });
        let document =
            built.await.map_err(|error| failed(error.to_string()))?.map_err(|bad| failed(bad.to_string()))?;
        drop(turn);
        Ok(self.confirm(ticket, document, stated, &inquiry))
    }

    /// Stores a document as confirmed by the backend just now, unless it was purged since it was asked for.
    fn confirm(
        &self,
        ticket: &Ticket<Landing, Note>,
        document: Document,
        stated: Option<Wall>,
        inquiry: &Inquiry,
    ) -> Arc<Stored> {
        let (now, before) = (inquiry.answered, inquiry.before.as_deref());
        let (keeping, route) = (self.keeping.load(), ticket.key().route);
        let known = Known { stated, of_the_backend: self.refreshes.expected(now) };
        let dates = keeping.dates(route, known, document.generated_at(), now.wall);
        let [due, ask_again] = [dates.due, dates.ask_again].map(|at| now.mono_at(at));
        if keeping.life(route).follows_the_backend() {
            self.refreshes.hear_of(dates.due);
            self.refreshes.begin(Rhythm::new(keeping.cadence, due, now.mono));
        }
        let kept = self.cache.has_room_for(&document);
        let mut stored = Stored::confirmed(document, [due, ask_again], inquiry.asked, before);
        stored.kept = kept;
        let stored = Arc::new(stored);
        let (key, document) = (ticket.key(), &stored.document);
        if kept {
            ticket.while_current(|| self.cache.put(key.clone(), Arc::clone(&stored)));
            self.keepsakes.note(key);
        } else {
            tracing::warn!(document = %key, bytes = document.bytes(), "a document is too large to be stored");
        }
        let was_current = |before: &&Stored| before.confirmed >= self.refreshes.seen_at();
        let has_changed =
            before.filter(was_current).is_some_and(|before| !document.is_like(&before.document));
        if has_changed && keeping.life(route).follows_the_backend() {
            let (document, stored) = (key.clone(), Arc::clone(&stored));
            self.refreshes.met(Met { document, stored, at: now.mono });
        }
        stored
    }
}
