//! Reads `overload.*`.

use crate::gateway::ConcurrencyConfig;

use crate::config::config_reader::ConfigReader;

pub(in crate::config) fn capacity(reading: &mut ConfigReader<'_>) -> ConcurrencyConfig {
    ConcurrencyConfig {
        cached: reading.get("overload.cached_slots"),
        waiting: reading.get("overload.waiting_slots"),
        queue: reading.get("overload.queue_length"),
        queue_timeout: reading.get("overload.queue_timeout"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::tests::accepted;

    #[test]
    fn pools_have_the_configured_or_default_sizes() {
        let pools = accepted("").concurrency;
        assert_eq!(
            (pools.cached, pools.waiting, pools.queue),
            (1_024, 16_384, 512)
        );
        assert_eq!(pools.queue_timeout, Duration::from_millis(10));
        let text = "[overload]\ncached_slots = 1\nwaiting_slots = 2\nqueue_length = 0\nqueue_timeout = \"1s\"";
        let pools = accepted(text).concurrency;
        assert_eq!((pools.cached, pools.waiting, pools.queue), (1, 2, 0));
        assert_eq!(pools.queue_timeout, Duration::from_secs(1));
    }
}
