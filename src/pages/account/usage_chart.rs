//! An SVG chart of daily requests as stacked bars. Groups of outcomes are distinguished by position and
//! pattern in addition to colour. The tables of `usage_tables` contain the numbers.

use crate::pages::html::{escape, grouped, push};
use scoregate_base::{clock::Day, words};
use scoregate_store::OutcomeCounts;

/// Width of a day including the gap, width of a bar, and height of the chart.
const STEP: u64 = 20;
const WIDTH: u64 = 14;
const HEIGHT: u64 = 160;
/// Minimum height of a part, so that a single request is visible.
const LEAST: u64 = 3;
/// Maximum number of intervals of the vertical axis.
const MOST_INTERVALS: u128 = 4;

words! {
    /// Groups of outcomes that mean the same to a developer. The first group is the lowest part of a bar.
    pub(super) enum OutcomeGroup: word {
        Successful = "successful",
        Refused = "refused",
        Failed = "failed",
        Disconnected = "disconnected",
    }
}

impl OutcomeGroup {
    pub(super) const fn of(self, counts: &OutcomeCounts) -> u64 {
        match self {
            Self::Successful => counts.ok.saturating_add(counts.not_modified),
            Self::Refused => counts
                .client_error
                .saturating_add(counts.rate_limited)
                .saturating_add(counts.quota_exceeded),
            Self::Failed => counts.server_error,
            Self::Disconnected => counts.disconnected,
        }
    }

    /// The lines of the group's pattern. `None` if the group is solid.
    const fn lines(self) -> Option<&'static str> {
        match self {
            Self::Successful => None,
            Self::Refused => Some("M-1 7L7 -1M5 7L7 5M-1 1L1 -1"),
            Self::Failed => Some("M0 0L6 6M6 0L0 6"),
            Self::Disconnected => Some("M0 1.5H6M0 4.5H6"),
        }
    }
}

/// The vertical axis, which has `intervals` of `step` requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChartAxis {
    step: u128,
    intervals: u128,
}

impl ChartAxis {
    /// The axis for this maximum. The step is 1, 2 or 5 times a power of ten.
    fn reaching(most: u128) -> Self {
        let powers = (0..).map(|exponent| 10_u128.pow(exponent));
        let step = powers
            .flat_map(|power| [1, 2, 5].map(|factor| factor * power))
            .find(|step| step * MOST_INTERVALS >= most)
            .unwrap_or(1);
        Self {
            step,
            intervals: most.div_ceil(step).max(1),
        }
    }

    const fn top(self) -> u128 {
        self.step * self.intervals
    }
}

/// The chart with its axes.
pub fn chart(days: &[(Day, OutcomeCounts)]) -> String {
    let axis = ChartAxis::reaching(
        days.iter()
            .map(|(_, counts)| sum(counts))
            .max()
            .unwrap_or(0),
    );
    let width = STEP * u64::try_from(days.len()).unwrap_or(0);
    let mut html = format!(
        "<div class=\"plot\">\n<p class=\"ticks\" aria-hidden=\"true\">{}</p>\n\
         <svg viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-labelledby=\"usage-name usage-words\"><title id=\"usage-name\">Requests by day</title>\
         <desc id=\"usage-words\">{}</desc>\n<defs>{}</defs>\n{}\n",
        ticks(axis),
        escape(&description(days)),
        patterns(),
        grid(axis, width)
    );
    for (number, (day, counts)) in (0_u64..).zip(days) {
        html.push_str(&bar(
            number * STEP + (STEP - WIDTH) / 2,
            *day,
            counts,
            axis.top(),
        ));
    }
    html.push_str("</svg>\n");
    if let Some((first, _)) = days.first()
        && let Some((last, _)) = days.last()
    {
        push(
            &mut html,
            format_args!("<p class=\"ends\"><span>{first}</span><span>{last}</span></p>\n"),
        );
    }
    html.push_str("</div>\n");
    html
}

/// The total number of requests on a day. The sum can exceed a `u64` if each outcome's count is at its maximum.
fn sum(counts: &OutcomeCounts) -> u128 {
    OutcomeGroup::ALL
        .iter()
        .map(|group| u128::from(group.of(counts)))
        .sum()
}

/// The labels of the vertical axis, highest first.
fn ticks(axis: ChartAxis) -> String {
    let labels: Vec<String> = (0..=axis.intervals)
        .rev()
        .map(|number| compact(number * axis.step))
        .collect();
    format!("<span>{}</span>", labels.join("</span><span>"))
}

/// Formats a number as `1,500`, `20 k` or `1.5 M`. From 10,000 on, the number must have at most two digits that are not
/// trailing zeros.
fn compact(number: u128) -> String {
    if number < 10_000 {
        return grouped(number);
    }
    let mut unit = 1_000;
    let mut suffix = "k";
    for larger in ["M", "G", "T", "P", "E"] {
        if number >= unit * 1_000 {
            unit *= 1_000;
            suffix = larger;
        }
    }
    let whole = number / unit;
    let tenth = number % unit * 10 / unit;
    let fraction = if tenth == 0 {
        String::new()
    } else {
        format!(".{tenth}")
    };
    format!("{whole}{fraction} {suffix}")
}

/// A description of the chart in words.
fn description(days: &[(Day, OutcomeCounts)]) -> String {
    let most = days.iter().max_by_key(|(_, counts)| sum(counts));
    let most = most.map_or_else(String::new, |(day, counts)| {
        format!(" Most requests: {} on {day}.", grouped(sum(counts)))
    });
    format!(
        "One bar for each of {} days, divided by outcome.{most} The tables below list the numbers.",
        days.len()
    )
}

fn patterns() -> String {
    OutcomeGroup::ALL.into_iter().filter_map(|group| {
        let word = group.word();
        let lines = group.lines()?;
        Some(format!(
            "<pattern id=\"usage-{word}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
             <path class=\"lines {word}\" d=\"{lines}\"/></pattern>"
        ))
    }).collect()
}

fn grid(axis: ChartAxis, width: u64) -> String {
    let intervals = u64::try_from(axis.intervals).unwrap_or(1).max(1);
    let lines = (0..=intervals).map(|number| format!("M0 {}H{width}", HEIGHT * number / intervals));
    format!("<path class=\"grid\" d=\"{}\"/>", lines.collect::<String>())
}

fn bar(x: u64, day: Day, counts: &OutcomeCounts, top: u128) -> String {
    let groups = OutcomeGroup::ALL.map(|group| group.of(counts));
    let mut y = HEIGHT;
    let parts = OutcomeGroup::ALL
        .into_iter()
        .zip(heights(groups, top))
        .filter(|(_, height)| *height > 0);
    // The label is shown for the whole column.
    format!(
        "<g><title>{}</title><rect class=\"column\" x=\"{x}\" y=\"0\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>{}</g>\n",
        escape(&label(day, counts)),
        parts.map(|(group, height)| {
        y = y.saturating_sub(height);
        format!(
            "<rect class=\"part {}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\"{}/>",
            group.word(),
            fill_of(group)
        )
    }).collect::<String>()
    )
}

/// The `fill` attribute of a part or a sample that has a pattern.
fn fill_of(group: OutcomeGroup) -> String {
    if group.lines().is_some() {
        format!(" fill=\"url(#usage-{})\"", group.word())
    } else {
        String::new()
    }
}

/// A sample of a group, for the legend.
pub fn sample(group: OutcomeGroup) -> String {
    format!(
        "<svg class=\"sample\" viewBox=\"0 0 20 14\" aria-hidden=\"true\">\
         <rect class=\"part {}\" x=\"1\" y=\"1\" width=\"18\" height=\"12\"{}/></svg>",
        group.word(),
        fill_of(group)
    )
}

fn label(day: Day, counts: &OutcomeCounts) -> String {
    let parts = OutcomeGroup::ALL
        .into_iter()
        .map(|group| (group, group.of(counts)))
        .filter(|(_, count)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(group, count)| format!("{} {}", grouped(count), group.word()))
        .collect();
    if parts.is_empty() {
        format!("{day}: no requests")
    } else {
        format!("{day}: {}", parts.join(", "))
    }
}

/// The heights of the parts of a bar. Their sum is at most [`HEIGHT`].
fn heights(groups: [u64; 4], top: u128) -> [u64; 4] {
    let mut heights = groups.map(|count| {
        let scaled = u128::from(count) * u128::from(HEIGHT) / top.max(1);
        if count == 0 {
            0
        } else {
            u64::try_from(scaled).unwrap_or(HEIGHT).clamp(LEAST, HEIGHT)
        }
    });
    // The height that was added to small parts is subtracted from the tallest part.
    let excess = heights.iter().sum::<u64>().saturating_sub(HEIGHT);
    if let Some(tallest) = heights.iter_mut().max() {
        *tallest = tallest.saturating_sub(excess);
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_axis_has_a_few_round_labels_and_reaches_the_maximum() {
        for (most, step, intervals) in [
            (0, 1, 1),
            (1, 1, 1),
            (4, 1, 4),
            (5, 2, 3),
            (8, 2, 4),
            (9, 5, 2),
            (20, 5, 4),
            (21, 10, 3),
            (1_234, 500, 3),
            (u128::from(u64::MAX), 5_000_000_000_000_000_000, 4),
            (4 * u128::from(u64::MAX), 20_000_000_000_000_000_000, 4),
        ] {
            assert_eq!(
                ChartAxis::reaching(most),
                ChartAxis { step, intervals },
                "{most}"
            );
        }
    }

    #[test]
    fn labels_of_the_axis_are_short() {
        for (number, text) in [
            (0, "0"),
            (1_500, "1,500"),
            (8_000, "8,000"),
            (10_000, "10 k"),
            (1_500_000, "1.5 M"),
            (20_000_000_000_000_000_000, "20 E"),
            (80_000_000_000_000_000_000, "80 E"),
        ] {
            assert_eq!(compact(number), text);
        }
    }

    proptest! {
        #[test]
        fn parts_fit_into_the_chart_and_none_is_invisible(groups: [u64; 4], small in 0..9_u64, which in 0..4_usize) {
            let mut groups = groups;
            if let Some(group) = groups.get_mut(which) {
                *group = small;
            }
            let most = groups.iter().map(|count| u128::from(*count)).sum::<u128>();
            let top = ChartAxis::reaching(most).top();
            prop_assert!(top >= most && top <= (most * 5 / 2).max(1));
            let heights = heights(groups, top);
            prop_assert!(heights.iter().sum::<u64>() <= HEIGHT);
            for (count, height) in groups.into_iter().zip(heights) {
                prop_assert_eq!(count == 0, height == 0);
            }
        }
    }

    #[test]
    fn heights_are_proportional() {
        assert_eq!(heights([50, 25, 0, 25], 100), [80, 40, 0, 40]);
        assert_eq!(heights([1_000_000, 1, 1, 1], 1_000_000), [151, 3, 3, 3]);
        assert_eq!(heights([u64::MAX; 4], 4 * u128::from(u64::MAX)), [40; 4]);
        assert_eq!(heights([0; 4], 1), [0; 4]);
    }

    #[test]
    fn every_day_has_a_bar_with_the_parts_of_its_outcomes() {
        let day = |number: u32| Day::from_number(20_000 + number);
        let counts = OutcomeCounts {
            ok: 1_000,
            not_modified: 1,
            rate_limited: 7,
            disconnected: 2,
            ..OutcomeCounts::default()
        };
        let html = chart(&[(day(0), OutcomeCounts::default()), (day(1), counts)]);
        assert_eq!(html.matches("<g>").count(), 2);
        assert!(
            html.contains("<title>2024-10-04: no requests</title>"),
            "{html}"
        );
        assert!(
            html.contains("<title>2024-10-05: 1,001 successful, 7 refused, 2 disconnected</title>"),
            "{html}"
        );
        let part = |word: &str| {
            html.matches(&format!("<rect class=\"part {word}\""))
                .count()
        };
        assert_eq!(
            OutcomeGroup::ALL.map(|group| part(group.word())),
            [1, 1, 0, 1]
        );
        assert!(
            html.contains("<span>1,500</span><span>1,000</span><span>500</span><span>0</span>"),
            "{html}"
        );
        assert!(
            html.contains("Most requests: 1,010 on 2024-10-05."),
            "{html}"
        );
        assert!(
            html.contains("<span>2024-10-04</span><span>2024-10-05</span>"),
            "{html}"
        );
    }
}
