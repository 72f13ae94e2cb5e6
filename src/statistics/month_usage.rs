//! The usage of a month: a line for each application and closed day, and a digest.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use scoregate_base::{clock::Day, keys::OwnerId};
use scoregate_store::{Store, StoreResult, UsageTotal};

/// Passes the lines of the month that begins on `first` to `take`. If `owner` is given, other owners' lines are
/// omitted. Returns the SHA-256 of the lines as JSON, which is the same for every later call; `None` until all days are
/// closed.
pub async fn read_month(
    store: &Store,
    first: Day,
    owner: Option<OwnerId>,
    mut take: impl FnMut(UsageTotal),
) -> StoreResult<Option<String>> {
    let mut digest = Sha256::new();
    let mut is_closed = true;
    let [_, end] = first.month(1);
    for number in first.number()..end.number() {
        let day = Day::from_number(number);
        let usage = store.usage(day, usize::MAX, owner).await?;
        is_closed &= usage.is_closed;
        for line in usage.totals.into_iter().filter(|_| usage.is_closed) {
            digest.update(line.json());
            take(line);
        }
    }
    Ok(is_closed.then(|| HEXLOWER.encode(&digest.finalize())))
}
