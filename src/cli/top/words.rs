//! Formats numbers for people.

use std::time::Duration;

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds and counts, far below 2^52"
)]
pub fn as_f64(number: u64) -> f64 {
    number as f64
}

pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1} %", share * 100.0))
}

/// Formats a rate with one decimal below 100 and without decimals above.
pub fn rate(rate: f64) -> String {
    if rate >= 99.95 {
        count(rate)
    } else if rate == 0.0 {
        "0".into()
    } else {
        format!("{rate:.1}")
    }
}

/// Formats a rounded number with thousands separators.
pub fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".into(),
        Some(seconds) if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

pub fn size(bytes: f64) -> String {
    match bytes {
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.0} kB", bytes / 1e3),
    }
}

/// A duration in its two largest units.
pub fn span(seconds: f64) -> String {
    let seconds = Duration::try_from_secs_f64(seconds)
        .unwrap_or_default()
        .as_secs();
    match (
        seconds / 86_400,
        seconds / 3_600 % 24,
        seconds / 60 % 60,
        seconds % 60,
    ) {
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

/// Truncates a text and replaces control characters, which a terminal would interpret.
pub fn short(text: &str, max_chars: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .take(max_chars)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_have_a_unit() {
        assert_eq!(
            [0.0, 0.04, 9.96, 99.94, 99.95, 12_345.6].map(rate),
            ["0", "0.0", "10.0", "99.9", "100", "12,346"]
        );
        assert_eq!(
            [0.0, 999.0, 1_000.0, 1_234_567.0].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        let times = [None, Some(0.000_08), Some(0.0023), Some(1.25)].map(time);
        assert_eq!(times, ["-", "80 µs", "2.3 ms", "1.2 s"]);
        assert_eq!(
            [512.0, 45.2e6, 2.5e9].map(size),
            ["1 kB", "45.2 MB", "2.5 GB"]
        );
        let spans = [-5.0, 59.0, 61.0, 7_260.0, 90_000.0].map(span);
        assert_eq!(spans, ["0 s", "59 s", "1 min 1 s", "2 h 1 min", "1 d 1 h"]);
        assert_eq!(
            (percent(Some(0.991)), percent(None)),
            ("99.1 %".into(), "-".into())
        );
        assert_eq!(short("a\u{7}bc", 3), "a?b");
    }
}
