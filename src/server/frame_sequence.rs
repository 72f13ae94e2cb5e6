//! The position in a sequence of HTTP/2 frames. No I/O.

use bytes::BytesMut;

/// Length of a frame header.
// RFC 9113, section 4.1.
const FRAME_HEAD: usize = 9;
/// Frame types, and the flag that marks the last frame of a head.
// RFC 9113, section 6.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The position in the sequence of frames.
#[derive(Default)]
pub struct FrameSequence {
    /// Remaining bytes of the current payload, or of the preface.
    rest: usize,
    /// The last frame header.
    head: [u8; FRAME_HEAD],
    /// Bytes of the next frame header that have arrived.
    filled: usize,
    /// Bytes of the request head, including the rest of the current frame.
    head_bytes: usize,
    is_incomplete: bool,
    last_stream: u32,
    resets: usize,
}

impl FrameSequence {
    /// Creates a sequence that begins with a preface of this length, followed by the first frame.
    pub fn after(preface: usize) -> Self {
        Self {
            rest: preface,
            ..Self::default()
        }
    }

    /// Whether a request head or a frame other than DATA has arrived only in part.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// The size of the partially received request head.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// The highest stream number of a request.
    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    /// Number of resets.
    pub fn resets(&self) -> usize {
        self.resets
    }

    /// Advances to the end of the first request head, or of `bytes`. Returns the number of bytes passed, and whether
    /// they end with a head.
    pub fn advance(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut unread = bytes;
        while !unread.is_empty() {
            unread = self.step(unread);
            if self.filled == 0 && self.rest == 0 && self.ends_head() {
                return (bytes.len() - unread.len(), true);
            }
        }
        (bytes.len(), false)
    }

    /// Advances to the end of `bytes`. Returns the frames that belong to the connection or to open streams up to `last_stream`. `bytes` must not begin in the middle of a frame header.
    pub fn without_streams_after(&mut self, last_stream: u32, bytes: &[u8]) -> BytesMut {
        let mut kept = BytesMut::new();
        let mut unread = bytes;
        while !unread.is_empty() {
            let is_payload = self.rest > 0;
            let after = self.step(unread);
            let part = unread.get(..unread.len() - after.len()).unwrap_or_default();
            let is_kept = !self.is_head() && self.stream() <= last_stream;
            if is_kept && is_payload {
                kept.extend_from_slice(part);
            } else if is_kept && (self.filled == 0 || self.filled == FRAME_HEAD) {
                kept.extend_from_slice(&self.head);
            }
            unread = after;
        }
        kept
    }

    /// Advances over the part of a frame header or payload that has arrived. Returns the bytes after it.
    fn step<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let after = if self.rest > 0 {
            let (payload, after) = bytes.split_at(self.rest.min(bytes.len()));
            self.rest -= payload.len();
            after
        } else {
            let (part, after) = bytes.split_at((FRAME_HEAD - self.filled).min(bytes.len()));
            if let Some(slots) = self.head.get_mut(self.filled..self.filled + part.len()) {
                slots.copy_from_slice(part);
            }
            self.filled += part.len();
            if self.filled < FRAME_HEAD {
                return after;
            }
            self.begin_frame();
            after
        };
        if self.rest == 0 {
            self.filled = 0;
            self.is_incomplete = self.is_head() && !self.ends_head();
            if !self.is_incomplete {
                self.head_bytes = 0;
            }
        }
        after
    }

    /// Handles a complete frame header.
    fn begin_frame(&mut self) {
        let [one, two, three, kind, ..] = self.head;
        self.rest = u32::from_be_bytes([0, one, two, three]) as usize;
        self.is_incomplete = kind != DATA;
        self.resets += usize::from(kind == RST_STREAM);
        if kind == HEADERS {
            self.last_stream = self.last_stream.max(self.stream());
        }
        if self.is_head() {
            self.head_bytes += self.rest;
        }
    }

    /// Whether the frame is part of a request head.
    fn is_head(&self) -> bool {
        let [_, _, _, kind, ..] = self.head;
        matches!(kind, HEADERS | CONTINUATION)
    }

    /// Whether the frame is the last part of a request head.
    fn ends_head(&self) -> bool {
        let [_, _, _, _, flags, ..] = self.head;
        self.is_head() && flags & END_HEADERS != 0
    }

    fn stream(&self) -> u32 {
        let [_, _, _, _, _, stream @ ..] = self.head;
        u32::from_be_bytes(stream) & (u32::MAX >> 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of stream 1.
    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        [
            &[0, 0, length, kind, flags, 0, 0, 0, 1],
            &vec![b'x'; usize::from(length)][..],
        ]
        .concat()
    }

    /// A preface, and three requests among other frames, with the position at which each request ends.
    fn sample() -> (Vec<u8>, [usize; 3]) {
        let mut bytes = b"preface".to_vec();
        let mut ends = [0; 3];
        let heads = [
            frame(HEADERS, END_HEADERS, 40),
            [
                frame(HEADERS, 0, 40),
                frame(CONTINUATION, 0, 0),
                frame(CONTINUATION, END_HEADERS, 8),
            ]
            .concat(),
            [frame(HEADERS, 0, 0), frame(CONTINUATION, END_HEADERS, 0)].concat(),
        ];
        for (end, head) in ends.iter_mut().zip(heads) {
            bytes.extend([frame(4, 0, 6), head].concat());
            *end = bytes.len();
        }
        bytes.extend([frame(DATA, 0, 4), frame(6, 0, 0)].concat());
        (bytes, ends)
    }

    #[test]
    fn the_end_of_each_request_is_found_however_the_bytes_are_cut() {
        let (bytes, ends) = sample();
        for size in 1..bytes.len() {
            let mut frames = FrameSequence::after(7);
            let mut at = 0;
            let mut found = Vec::new();
            for chunk in bytes.chunks(size) {
                let mut rest = chunk;
                while !rest.is_empty() {
                    let (length, is_request) = frames.advance(rest);
                    (at, rest) = (at + length, &rest[length..]);
                    found.extend(is_request.then_some(at));
                    assert!(!is_request || (!frames.is_incomplete() && frames.head_bytes() == 0));
                }
            }
            assert_eq!(found, ends, "in chunks of {size}");
        }
    }

    #[test]
    fn a_head_is_incomplete_until_its_last_frame_has_arrived_and_a_body_never_is() {
        let mut frames = FrameSequence::after(0);
        for (part, is_incomplete, head_bytes) in [
            (&frame(HEADERS, 0, 40)[..20], true, 40),
            (&frame(HEADERS, 0, 40)[20..], true, 40),
            (&frame(CONTINUATION, END_HEADERS, 8)[..9], true, 48),
            (&frame(CONTINUATION, END_HEADERS, 8)[9..], false, 0),
            (&frame(4, 0, 6)[..10], true, 0),
            (&frame(4, 0, 6)[10..], false, 0),
            (&frame(DATA, 0, 6)[..10], false, 0),
        ] {
            frames.advance(part);
            assert_eq!(
                (frames.is_incomplete(), frames.head_bytes()),
                (is_incomplete, head_bytes)
            );
        }
    }

    #[test]
    fn frames_of_further_streams_are_left_out_however_the_bytes_are_cut() {
        let on = |stream: u8, mut frame: Vec<u8>| {
            frame[8] = stream;
            frame
        };
        let data = frame(DATA, 0, 9);
        let ping = on(0, frame(6, 0, 8));
        let window = on(3, frame(8, 0, 4));
        let all = [
            &on(5, frame(HEADERS, 0, 40)),
            &ping,
            &on(5, frame(CONTINUATION, END_HEADERS, 0)),
            &data,
            &on(5, frame(DATA, 0, 30)),
            &window,
            &on(7, frame(RST_STREAM, 0, 4)),
            &on(0, frame(4, 1, 0)),
        ];
        let all = all.map(Vec::as_slice).concat();
        for size in 1..=all.len() {
            let mut frames = FrameSequence::after(0);
            let kept: Vec<u8> = all
                .chunks(size)
                .flat_map(|chunk| frames.without_streams_after(3, chunk))
                .collect();
            assert_eq!(
                kept,
                [&ping[..], &data, &window, &on(0, frame(4, 1, 0))].concat(),
                "in chunks of {size}"
            );
        }
    }
}
