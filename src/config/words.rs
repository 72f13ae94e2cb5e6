//! Parses durations and sizes, and suggests corrections for misspelled paths.

use std::time::Duration;

use super::settings::SETTINGS;

/// The known setting closest to a path, if its edit distance is at most 3.
pub fn nearest(path: &str) -> Option<&'static str> {
    let candidates = SETTINGS
        .iter()
        .map(|setting| (strsim::levenshtein(path, setting.path), setting.path));
    candidates
        .min()
        .filter(|(distance, _)| *distance <= 3)
        .map(|(_, known)| known)
}

/// Parses a duration such as `"10s"`. `None` for zero, invalid text and more than ten years.
pub fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    // A duration longer than ten years is probably a mistake.
    let time = Duration::from_millis(number.checked_mul(millis)?);
    (number > 0 && time <= Duration::from_hours(87_600)).then_some(time)
}

/// Parses a size such as `"8MiB"` into bytes.
pub fn size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let bytes = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(bytes).filter(|bytes| *bytes > 0)
}

fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_need_units() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("7d"), Some(Duration::from_hours(168)));
        assert_eq!(size("8MiB"), Some(8 << 20));
        for bad in [
            "",
            "10",
            "s",
            "-1s",
            "1.5h",
            "0s",
            "99999999999999999999s",
            "10 weeks",
            "200000d",
        ] {
            assert_eq!(duration(bad), None, "{bad}");
        }
    }
}
