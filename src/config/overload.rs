//! `overload.*` as read. Not for: what is done about it (`gateway::Capacity`).

use crate::gateway::ConcurrencyConfig;

use super::config_reader::ConfigReader;

impl ConfigReader<'_> {
    pub(super) fn capacity(&mut self) -> ConcurrencyConfig {
        let mut number = |path| usize::try_from(self.number(path)).unwrap_or(usize::MAX);
        ConcurrencyConfig {
            at_hand: number("overload.at_once"),
            waiting: number("overload.waiting"),
            queue: number("overload.queue"),
            patience: self.duration("overload.patience"),
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
        let rooms = config("").unwrap().capacity;
        assert_eq!((rooms.at_hand, rooms.waiting, rooms.queue), (1_024, 16_384, 512));
        assert_eq!(rooms.patience, Duration::from_millis(10));
        let text = "[overload]\nat_once = 1\nwaiting = 2\nqueue = 0\npatience = \"1s\"";
        let rooms = config(text).unwrap().capacity;
        assert_eq!((rooms.at_hand, rooms.waiting, rooms.queue), (1, 2, 0));
        assert_eq!(rooms.patience, Duration::from_secs(1));
        let text = "[overload]\nat_once = 0\nwaiting = \"all\"\nqueue = -1\npatience = 10";
        assert_eq!(config(text).unwrap_err().0.len(), 4);
    }
}
