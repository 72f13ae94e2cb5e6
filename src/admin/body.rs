//! Reads the body of a request to the side port: within a size and a deadline.
//!
//! Not for: what is in it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use crate::clock::Clock;

use super::command::{CommandProblem, largest_body};

/// How long the body of a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// So many bytes above the limit are still read and dropped: a client that is still sending them would lose the answer.
const DROPPED: usize = 65_536;

/// Reads the whole body of a request for this path.
pub(super) async fn read(clock: &Clock, path: &str, mut body: Incoming) -> Result<Bytes, CommandProblem> {
    let limit = largest_body(path);
    if body.size_hint().lower() > limit as u64 {
        return Err(CommandProblem::too_large(limit));
    }
    let (mut whole, mut read) = (BytesMut::new(), 0_usize);
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            read = read.saturating_add(data.len());
            if read <= limit {
                whole.extend_from_slice(&data);
            } else if read > limit + DROPPED {
                break;
            }
        }
        Ok::<_, hyper::Error>(())
    };
    let ended = clock.within(TIMEOUT, reading).await;
    match ended {
        _ if read > limit => Err(CommandProblem::too_large(limit)),
        Ok(Ok(())) => Ok(whole.freeze()),
        Ok(Err(_)) => {
            Err(CommandProblem::bad("the connection ended before the whole body was received: send it again"))
        }
        Err(_) => Err(CommandProblem::too_slow(TIMEOUT)),
    }
}
