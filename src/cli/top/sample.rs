//! A sample of a running server: its Prometheus metrics and its usage.

use crate::admin::UsageView;
use scoregate_base::clock::Now;

/// The state of a server when it was sampled.
#[derive(Clone, Debug)]
pub struct ServerSample {
    pub at: Now,
    pub metrics: ScrapedMetrics,
    pub usage: UsageView,
}

/// The series of a scrape.
#[derive(Clone, Debug, Default)]
pub struct ScrapedMetrics(Vec<MetricSample>);

/// A series and its value.
#[derive(Clone, Debug)]
struct MetricSample {
    name: String,
    /// The unparsed text between the braces.
    labels: String,
    value: f64,
}

impl ScrapedMetrics {
    /// Parses the text of a scrape. Lines that are not series are skipped.
    pub fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(MetricSample::read).collect())
    }

    /// The sum of all series with this name that have one of these labels, such as `class="2xx"`. If no labels are
    /// given, the sum of all series.
    pub fn sum(&self, name: &str, with: &[&str]) -> f64 {
        // `sum()` of no floats is -0, which would be printed.
        self.series(name)
            .filter(|series| series.has_one(with))
            .fold(0.0, |sum, one| sum + one.value)
    }

    /// The value of a label in the first series with this name.
    pub fn label(&self, name: &str, label: &str) -> Option<&str> {
        self.series(name).next()?.label(label)
    }

    /// The values of a label in all series with this name, in the order of the series.
    pub fn labels<'m>(&'m self, name: &'m str, label: &'m str) -> impl Iterator<Item = &'m str> {
        self.series(name)
            .filter_map(move |series| series.label(label))
    }

    /// The buckets of a histogram, summed over all other labels: upper bounds and cumulative counts, lowest first.
    pub fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for series in self.series(&format!("{name}_bucket")) {
            let Some(bound) = series
                .label("le")
                .and_then(|bound| bound.parse::<f64>().ok())
            else {
                continue;
            };
            match buckets
                .iter_mut()
                .find(|(known, _)| known.total_cmp(&bound).is_eq())
            {
                Some((_, count)) => *count += series.value,
                None => buckets.push((bound, series.value)),
            }
        }
        buckets.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        buckets
    }

    fn series<'m>(&'m self, name: &str) -> impl Iterator<Item = &'m MetricSample> {
        self.0.iter().filter(move |series| series.name == name)
    }
}

impl MetricSample {
    fn read(line: &str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let name = name.to_owned();
        let labels = labels.trim_end_matches('}').to_owned();
        Some(Self {
            name,
            labels,
            value: value.parse().ok()?,
        })
    }

    fn has_one(&self, with: &[&str]) -> bool {
        with.is_empty() || with.iter().any(|label| self.labels.contains(label))
    }

    /// The value of a label. The label values of this program contain neither commas nor quotes.
    fn label(&self, name: &str) -> Option<&str> {
        let values = self
            .labels
            .split(',')
            .filter_map(|label| label.split_once('='));
        values
            .filter(|(known, _)| *known == name)
            .map(|(_, value)| value.trim_matches('"'))
            .next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# TYPE a counter\n\
        a{class=\"2xx\",endpoint=\"models\"} 3\na{class=\"5xx\",endpoint=\"models\"} 4\n\
        h_bucket{endpoint=\"x\",le=\"0.5\"} 1\nh_bucket{endpoint=\"x\",le=\"+Inf\"} 2\n\
        h_bucket{endpoint=\"y\",le=\"0.5\"} 10\nh_bucket{endpoint=\"y\",le=\"+Inf\"} 20\n\
        plain 7.5\nscoregate_build_info{version=\"1.2.3\"} 1\nno number here\n";

    #[test]
    fn series_are_summed_by_label() {
        let metrics = ScrapedMetrics::read(TEXT);
        let sums = [
            ("a", &[][..]),
            ("a", &["class=\"5xx\""]),
            ("a", &["class=\"2xx\"", "class=\"5xx\""]),
            ("a", &["class=\"4xx\""]),
            ("plain", &[]),
            ("none", &[]),
        ];
        let sums = sums.map(|(name, with)| metrics.sum(name, with).to_string());
        assert_eq!(sums, ["7", "4", "7", "0", "7.5", "0"]);
        assert_eq!(
            metrics.label("scoregate_build_info", "version"),
            Some("1.2.3")
        );
    }

    #[test]
    fn the_buckets_of_all_series_of_a_histogram_are_summed() {
        let buckets = ScrapedMetrics::read(TEXT).buckets("h");
        assert_eq!(format!("{buckets:?}"), "[(0.5, 11.0), (inf, 22.0)]");
    }
}
