//! `overload.*`: concurrency limits. Applied in `gateway::concurrency_limit`.

use crate::gateway::ConcurrencyConfig;

use super::config_reader::ConfigReader;

impl ConfigReader<'_> {
    pub(super) fn capacity(&mut self) -> ConcurrencyConfig {
        let mut number = |path| usize::try_from(self.number(path)).unwrap_or(usize::MAX);
        ConcurrencyConfig {
            cached: number("overload.cached_slots"),
            waiting: number("overload.waiting_slots"),
            queue: number("overload.queue_length"),
            queue_timeout: self.duration("overload.queue_timeout"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{read_text, resolve};

    #[test]
    fn rooms_have_the_sizes_that_are_written_and_else_those_of_the_table() {
        let config = |text: &str| resolve(&read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap());
        let rooms = config("").unwrap().concurrency;
        assert_eq!((rooms.cached, rooms.waiting, rooms.queue), (1_024, 16_384, 512));
        assert_eq!(rooms.queue_timeout, Duration::from_millis(10));
        let text =
            "[overload]\ncached_slots = 1\nwaiting_slots = 2\nqueue_length = 0\nqueue_timeout = \"1s\"";
        let rooms = config(text).unwrap().concurrency;
        assert_eq!((rooms.cached, rooms.waiting, rooms.queue), (1, 2, 0));
        assert_eq!(rooms.queue_timeout, Duration::from_secs(1));
        let text =
            "[overload]\ncached_slots = 0\nwaiting_slots = \"all\"\nqueue_length = -1\nqueue_timeout = 10";
        assert_eq!(config(text).unwrap_err().0.len(), 4);
    }
}
