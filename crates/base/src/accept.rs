//! Accepts connections on a listening socket.

use std::{future::Future, io, time::Duration};

use crate::clock::Clock;

/// Length of the kernel's accept queue, for load peaks and for the handover between two processes. If the queue is
/// full, clients retry after a second.
pub const BACKLOG: u32 = 4_096;

/// Pause after a failure to accept, because descriptors are released only over time.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// The next connection. Failures are logged and retried.
pub async fn accept_next<C, F>(clock: &Clock, mut accept: impl FnMut() -> F) -> C
where
    F: Future<Output = io::Result<C>>,
{
    loop {
        match accept().await {
            Ok(connection) => return connection,
            Err(error) => {
                tracing::error!(%error, "cannot accept connections");
                clock.sleep(RETRY_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::clock::Wall;

    #[test]
    fn a_failure_to_accept_is_retried_after_a_pause() {
        let (clock, hand) = Clock::manual(Wall::from_seconds(0));
        let mut results = vec![Ok(7), Err(io::Error::other("no descriptor is free"))];
        let mut next = pin!(accept_next(&clock, || ready(results.pop().unwrap())));
        assert!(next.as_mut().now_or_never().is_none());
        hand.advance(RETRY_DELAY);
        assert_eq!(next.as_mut().now_or_never(), Some(7));
    }
}
