//! Reads `suspects.*`: the thresholds of the rules that detect misuse.

use scoregate_base::evidence::judgement::SuspectRules;

use crate::config::config_reader::ConfigReader;

pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> SuspectRules {
    let mut share = |path| f64::from(reading.get::<u8>(path)) / 100.0;
    let hour_share = share("suspects.hour_percent");
    let day_share = share("suspects.day_percent");
    let group_share = share("suspects.group_percent");
    let repeated = share("suspects.repeated_percent");
    SuspectRules {
        days: reading.get("suspects.days"),
        hours: reading.get("suspects.hours"),
        networks: reading.get("suspects.networks"),
        products: reading.get("suspects.products"),
        documents: reading.get("suspects.documents"),
        hour_share,
        day_share,
        group_share,
        repeated,
        ..SuspectRules::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::accepted;

    #[test]
    fn thresholds_are_those_of_the_simulation_unless_they_are_set() {
        assert_eq!(accepted("").suspects, SuspectRules::default());
        let set = accepted("suspects.hour_percent = 55\nsuspects.networks = 20").suspects;
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
