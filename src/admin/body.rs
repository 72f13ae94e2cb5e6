//! Reads request bodies of the side port within a size limit and a timeout.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};

use scoregate_base::clock::Clock;

use super::{
    command::max_body_bytes,
    command_problem::{CommandProblem, CommandResult},
};

/// Maximum time to receive a body.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes in excess of the limit that are read and discarded. Otherwise a client that is still sending could miss the
/// response.
const DISCARDED: usize = 65_536;

/// Reads the body of a request for `path`, up to the limit of that path.
pub async fn read(clock: &Clock, path: &str, mut body: Incoming) -> CommandResult<Bytes> {
    let limit = max_body_bytes(path);
    if body.size_hint().lower() > limit as u64 {
        return Err(CommandProblem::too_large(limit));
    }
    let mut received = BytesMut::new();
    let mut read = 0_usize;
    let reading = async {
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            read = read.saturating_add(data.len());
            if read <= limit {
                received.extend_from_slice(&data);
            } else if read > limit + DISCARDED {
                break;
            }
        }
        Ok::<_, hyper::Error>(())
    };
    match clock.within(TIMEOUT, reading).await {
        _ if read > limit => Err(CommandProblem::too_large(limit)),
        Ok(Ok(())) => Ok(received.freeze()),
        Ok(Err(_)) => Err(CommandProblem::bad(
            "the connection ended before the complete body was received; send it again",
        )),
        Err(_) => {
            let seconds = TIMEOUT.as_secs();
            Err(CommandProblem::new(
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the body was not received within {seconds} s; send it again on a new connection"
                ),
            ))
        }
    }
}
