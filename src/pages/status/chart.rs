//! An SVG chart with a bar for each day. Height and pattern show the state of a day in addition to colour: the good
//! part is solid, the rest is hatched, and a flat mark means no data. A table on the page has the numbers.

use crate::pages::html::escape;

/// Width of a day including the gap, width of a bar, and height of the chart.
const STEP: u64 = 8;
const WIDTH: u64 = 6;
const HEIGHT: u64 = 40;
/// Height of the mark for a day without data.
const FLAT: u64 = 3;
/// Minimum height of a hatched part, so that a single minute is visible, and minimum height of a solid part below it.
const LEAST_HATCHED: u64 = 10;
const LEAST_SOLID: u64 = 4;

/// A day in a chart: `good` of `whole` minutes. Both are zero if there is no data.
pub struct ChartDay {
    pub label: String,
    pub good: u64,
    pub whole: u64,
}

/// The chart, with an id that is unique in the page, a title and a description for screen readers.
pub fn chart(id: &str, title: &str, description: &str, days: &[ChartDay]) -> String {
    let width = STEP * u64::try_from(days.len()).unwrap_or(0);
    let bars = (0_u64..)
        .zip(days)
        .map(|(number, day)| bar(id, number * STEP, day));
    format!(
        "<svg class=\"days\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-labelledby=\"{id}-name {id}-words\"><title id=\"{id}-name\">{}</title><desc id=\"{id}-words\">{}</desc>\n\
         <defs><pattern id=\"{id}-hatch\" width=\"4\" height=\"4\" patternUnits=\"userSpaceOnUse\">\
         <path class=\"hatch\" d=\"M0 4L4 0\"/></pattern></defs>\n{}</svg>\n",
        escape(title),
        escape(description),
        bars.collect::<String>()
    )
}

fn bar(id: &str, x: u64, day: &ChartDay) -> String {
    let rect = |class: &str, y: u64, height: u64, more: &str| {
        format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{height}\"{more}/>"
        )
    };
    let hatched = hatched_height(day);
    let mut parts = String::new();
    if day.whole == 0 {
        parts = rect("none", HEIGHT - FLAT, FLAT, "");
    } else {
        if hatched < HEIGHT {
            parts = rect("up", hatched, HEIGHT - hatched, "");
        }
        if hatched > 0 {
            parts += &rect("down", 0, hatched, &format!(" fill=\"url(#{id}-hatch)\""));
        }
    }
    format!("<g><title>{}</title>{parts}</g>\n", escape(&day.label))
}

fn hatched_height(day: &ChartDay) -> u64 {
    let bad = day.whole.saturating_sub(day.good);
    if bad == 0 {
        0
    } else if day.good == 0 {
        HEIGHT
    } else {
        (HEIGHT * bad / day.whole).clamp(LEAST_HATCHED, HEIGHT - LEAST_SOLID)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(good: u64, whole: u64) -> ChartDay {
        ChartDay {
            label: "a <day>".into(),
            good,
            whole,
        }
    }

    #[test]
    fn the_state_of_a_day_is_shown_by_height_and_pattern() {
        for (good, whole, height) in [
            (0, 0, 0),
            (1_440, 1_440, 0),
            (1_439, 1_440, 10),
            (720, 1_440, 20),
            (1, 1_440, 36),
            (0, 1_440, 40),
        ] {
            assert_eq!(
                hatched_height(&day(good, whole)),
                height,
                "{good} of {whole}"
            );
        }
        let svg = chart(
            "a",
            "Name",
            "Words & more",
            &[day(0, 0), day(5, 5), day(4, 5), day(0, 5)],
        );
        let count = |class: &str| svg.matches(&format!("<rect class=\"{class}\"")).count();
        assert_eq!([count("none"), count("up"), count("down")], [1, 2, 2]);
        assert!(
            svg.contains("viewBox=\"0 0 32 40\"") && svg.contains("Words &amp; more"),
            "{svg}"
        );
        assert_eq!(svg.matches("<title>a &lt;day&gt;</title>").count(), 4);
    }
}
