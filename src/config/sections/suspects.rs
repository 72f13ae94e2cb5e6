//! Reads `suspects.*`: the thresholds of the rules about misuse.

use scoregate_base::evidence::judgement::SuspectRules;

use crate::config::config_reader::ConfigReader;

pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> SuspectRules {
    let mut share = |path| f64::from(reading.number::<u8>(path)) / 100.0;
    let hour_share = share("suspects.hour_percent");
    let day_share = share("suspects.day_percent");
    let group_share = share("suspects.group_percent");
    let repeated = share("suspects.repeated_percent");
    SuspectRules {
        days: reading.number("suspects.days"),
        hours: reading.number("suspects.hours"),
        networks: reading.number("suspects.networks"),
        products: reading.number("suspects.products"),
        documents: reading.number("suspects.documents"),
        hour_share,
        day_share,
        group_share,
        repeated,
        ..SuspectRules::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{read_text, resolve};

    use super::*;

    #[test]
    fn thresholds_are_those_of_the_simulation_unless_they_are_set() {
        let rules = |text: &str| {
            resolve(&read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap())
                .unwrap()
                .suspects
        };
        assert_eq!(rules(""), SuspectRules::default());
        let set = rules("suspects.hour_percent = 55\nsuspects.networks = 20");
        assert_eq!(
            set,
            SuspectRules {
                hour_share: 0.55,
                networks: 20,
                ..SuspectRules::default()
            }
        );
    }
}
