//! Joins small slices, so that a hit is sent with one plain write, which costs the kernel less than a vectored write.
//! The codec could also join slices, but it has a buffer per connection, which keeps the size of the largest response.
//! Here there is one buffer per thread, and larger responses stay shared with the cache.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::AsyncWrite;

/// Maximum total size of slices that are copied. From about 10 kB on, the copy costs more than the vectored write.
const MAX_JOINED: usize = 8 * 1_024;

thread_local! {
    /// The thread's buffer for joined writes.
    static JOINED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to an unbuffered stream. The `poll_write` of the stream must not call this function, because the buffer of
/// the thread is borrowed.
pub fn poll(
    stream: Pin<&mut impl AsyncWrite>,
    cx: &mut Context<'_>,
    slices: &[IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    if let [slice] = slices {
        return stream.poll_write(cx, slice);
    }
    if slices.iter().map(|slice| slice.len()).sum::<usize>() > MAX_JOINED {
        return stream.poll_write_vectored(cx, slices);
    }
    JOINED.with_borrow_mut(|joined| {
        joined.clear();
        for slice in slices {
            joined.extend_from_slice(slice);
        }
        stream.poll_write(cx, joined)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use parking_lot::Mutex;
    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// The writes to a socket: the number of slices, the address of the last slice, and the number of bytes accepted.
    type Writes = Arc<Mutex<Vec<(usize, usize, Option<usize>)>>>;

    /// A socket whose writes are recorded.
    struct RecordedIo(TcpStream, Writes);

    /// The stream that the codec writes to.
    struct JoiningIo(RecordedIo);

    impl RecordedIo {
        fn record(&self, slices: usize, last: &[u8], written: &Poll<io::Result<usize>>) {
            let bytes = match written {
                Poll::Ready(bytes) => Some(*bytes.as_ref().unwrap()),
                Poll::Pending => None,
            };
            self.1.lock().push((slices, last.as_ptr().addr(), bytes));
        }
    }

    impl AsyncWrite for RecordedIo {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            let written = Pin::new(&mut self.0).poll_write(cx, bytes);
            self.record(1, bytes, &written);
            written
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let written = Pin::new(&mut self.0).poll_write_vectored(cx, slices);
            self.record(slices.len(), slices.last().unwrap(), &written);
            written
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }

    impl AsyncRead for JoiningIo {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0.0).poll_read(cx, buffer)
        }
    }

    impl AsyncWrite for JoiningIo {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(cx, bytes)
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            poll(Pin::new(&mut self.0), cx, slices)
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }

    /// Starts a server that answers with this body and closes the connection. Returns a client and the writes of the
    /// server.
    async fn connect(body: Bytes) -> (TcpStream, Writes) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let writes = Writes::default();
        let io = JoiningIo(RecordedIo(socket, Arc::clone(&writes)));
        let service = service_fn(move |_: Request<Incoming>| {
            std::future::ready(Ok::<_, Infallible>(Response::new(Full::new(body.clone()))))
        });
        let mut codec = http1::Builder::new();
        codec.keep_alive(false).header_read_timeout(None);
        #[expect(clippy::disallowed_methods, reason = "the server of one client")]
        tokio::spawn(async move {
            codec
                .serve_connection(TokioIo::new(io), service)
                .await
                .unwrap();
        });
        (client, writes)
    }

    async fn body_read_by(mut client: TcpStream) -> Vec<u8> {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.unwrap();
        let end_of_head = response
            .windows(4)
            .position(|bytes| bytes == b"\r\n\r\n")
            .unwrap();
        response.split_off(end_of_head + 4)
    }

    #[tokio::test]
    async fn head_and_body_of_a_small_response_leave_in_one_plain_write() {
        for size in [1, 3_100, MAX_JOINED - 200] {
            let body = Bytes::from(vec![b'x'; size]);
            let (client, writes) = connect(body.clone()).await;
            assert_eq!(body_read_by(client).await, body);
            let writes = writes.lock();
            let [(1, _, Some(bytes))] = writes[..] else {
                panic!("{writes:?}")
            };
            assert!(bytes > size);
        }
    }

    #[tokio::test]
    async fn a_large_body_is_not_copied_and_waits_for_its_client() {
        let body: Bytes = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
        let (client, writes) = connect(body.clone()).await;
        assert!(body_read_by(client).await == body);
        let writes = writes.lock();
        assert!(
            writes.iter().any(|(_, _, bytes)| bytes.is_none()),
            "the socket accepts only parts"
        );
        let own = body.as_ptr().addr()..body.as_ptr().addr() + body.len();
        let (large, rest): (Vec<_>, Vec<_>) =
            writes.iter().partition(|(_, last, _)| own.contains(last));
        let copied: usize = rest.iter().filter_map(|(_, _, bytes)| *bytes).sum();
        assert!(
            copied <= MAX_JOINED && !large.is_empty(),
            "{copied} bytes were copied"
        );
    }
}
