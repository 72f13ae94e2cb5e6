//! Applications, their keys and the audit trail. The values are in `applications`.

use std::pin::Pin;

use futures_util::{Stream, stream};

use super::{
    ApplicationPage, AuditQuery, AuditRecord, KeyUse, StoreChange, StoreFuture, StoreResult,
    StoredApplication,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest};

/// Applications in a page of all, unless an engine has pages of its own.
const ALL_PAGE: usize = 10_000;

/// A request with an idempotency key, and what is kept about it for four days.
#[derive(Clone, Debug)]
pub struct KeyedRequest {
    /// SHA-256 of the key.
    pub digest: String,
    /// SHA-256 of the request.
    pub content: String,
    /// Random.
    pub salt: String,
    /// When it was sent first.
    pub at: Wall,
    /// The reply, once the request is performed.
    pub reply: Option<String>,
}

/// All applications in pages. After an error there are no more.
pub type ApplicationPages<'a> =
    Pin<Box<dyn Stream<Item = StoreResult<ApplicationPage>> + Send + 'a>>;

/// Applications, keys and the audit trail. Times have millisecond resolution.
pub trait KeyStore: Send + Sync + 'static {
    /// Up to `limit` applications after `after`, with the units granted for `day`.
    fn page(
        &self,
        after: Option<ApplicationId>,
        limit: usize,
        day: Day,
    ) -> StoreFuture<'_, ApplicationPage>;

    /// All applications, ordered by id, with the units granted for `day`.
    fn all(&self, day: Day) -> ApplicationPages<'_> {
        Box::pin(stream::try_unfold(Some(None), move |next| async move {
            let Some(after) = next else { return Ok(None) };
            let page = self.page(after, ALL_PAGE, day).await?;
            let next = page.next.map(Some);
            Ok(Some((page, next)))
        }))
    }

    /// One application, with the units granted for `day`. Fails if its record is unreadable; unreadable keys are left
    /// out.
    fn application(
        &self,
        id: ApplicationId,
        day: Day,
    ) -> StoreFuture<'_, Option<StoredApplication>>;

    /// These applications, with the units granted for `day`, as in a page. Unknown ones are left out.
    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage>;

    /// Those of these keys that exist, each with its application. Revoked and expired ones are included.
    fn find_keys(&self, digests: Vec<Digest>) -> StoreFuture<'_, Vec<(Digest, ApplicationId)>>;

    /// Makes a change and its audit record durable, both or neither, and returns the application as changed
    /// (`granted` for the day of the change). If its record is unreadable, a change that adds no key is made all the
    /// same, and the returned application contains revoked keys only: no other key is in force.
    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication>;

    /// Keeps a request, or the reply to one that has none. Returns what is kept of the first request with its key.
    fn keep_request(&self, request: KeyedRequest) -> StoreFuture<'_, KeyedRequest>;

    /// The applications whose previous limits are to be restored.
    fn due_limits(&self, now: Wall) -> StoreFuture<'_, Vec<ApplicationId>>;

    /// Records uses of keys. Unknown keys, and uses older than the recorded ones, are ignored.
    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()>;

    /// Audit records, newest first.
    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>>;
}
