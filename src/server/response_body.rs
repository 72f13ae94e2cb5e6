//! The body of an HTTP/2 response, which records every byte that is sent. The codec takes the whole body and sends as
//! much as the client's windows allow. Bytes count as sent when the codec advances over them, not when it takes the
//! body.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use super::activity::StreamGuard;

/// The body of a response. The request ends when the last byte has been sent.
pub struct ResponseBody {
    body: Full<Bytes>,
    guard: Option<StreamGuard>,
}

/// The bytes of the body in the codec, shared with the cache.
pub struct BodyBytes {
    bytes: Bytes,
    guard: Option<StreamGuard>,
}

impl ResponseBody {
    pub fn new(body: Full<Bytes>, guard: StreamGuard) -> Self {
        Self {
            body,
            guard: Some(guard),
        }
    }
}

impl Body for ResponseBody {
    type Data = BodyBytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyBytes>, Infallible>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        let guard = self.guard.take();
        Poll::Ready(
            frame
                .map(|frame| frame.map(|frame| frame.map_data(|bytes| BodyBytes { bytes, guard }))),
        )
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Buf for BodyBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        if let Some(guard) = &self.guard {
            guard.sent(count);
        }
        if self.bytes.is_empty() {
            // The codec may keep an empty buffer until it sends the next buffer.
            (self.bytes, self.guard) = (Bytes::new(), None);
        }
    }
}
