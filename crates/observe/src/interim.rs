//! A limit on interim (1xx) responses, of which a host may send any number before the final response.

use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use tokio_util::sync::CancellationToken;

/// Maximum number of interim responses. Hosts usually send one or two, such as `103 Early Hints`.
const MAX_INTERIM: u32 = 16;

/// Sends a request over HTTP/1.1. `None` if there were too many interim responses.
pub async fn with_few_interim<B, S: Future>(
    mut request: Request<B>,
    send: impl FnOnce(Request<B>) -> S,
) -> Option<S::Output> {
    let too_many = CancellationToken::new();
    let stop = too_many.clone();
    let received = AtomicU32::new(0);
    hyper::ext::on_informational(&mut request, move |_| {
        if received.fetch_add(1, Ordering::Relaxed) >= MAX_INTERIM {
            stop.cancel();
        }
    });
    let response = too_many.run_until_cancelled(send(request)).await;
    response.filter(|_| !too_many.is_cancelled())
}
