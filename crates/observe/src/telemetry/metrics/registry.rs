//! The registry of all metrics of a program: creates handles and renders the text for Prometheus.
//!
//! Counters are kept in [`CounterCells`] and copied to the recorder when metrics are read. Histograms are rendered
//! here, because the recorder would need every value.

use std::{collections::HashMap, fmt::Write as _, sync::Arc, time::Duration};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder as _, SharedString, Unit,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use parking_lot::Mutex;

use super::{
    CounterMatrix, FixedLabel, MetricFamily, MetricLabel,
    counter_cells::{CounterCell, CounterCells, HistogramBuckets},
    table::{LABELS, METRICS, MetricKind, MetricRow},
};
use crate::telemetry::process::{self, ProcessMetrics};

/// All metrics of one program. Several registries in one process are independent.
pub struct MetricsRegistry {
    recorder: PrometheusRecorder,
    cells: Arc<CounterCells>,
    counted: Arc<Mutex<RegisteredCounters>>,
}

/// The registered cells. Each is listed once, regardless of the number of handles. The maps are consistent after every
/// step.
#[derive(Default)]
struct RegisteredCounters {
    counters: HashMap<Key, (CounterCell, Counter)>,
    buckets: HashMap<Key, HistogramBuckets>,
}

/// Renders the metrics.
#[derive(Clone)]
pub struct Scrape {
    recorded: PrometheusHandle,
    counted: Arc<Mutex<RegisteredCounters>>,
    process: ProcessMetrics,
}

impl Scrape {
    /// The text for Prometheus.
    pub fn render(&self) -> String {
        self.process.update();
        let counted = self.counted.lock();
        for (cell, counter) in counted.counters.values() {
            counter.absolute(cell.sum());
        }
        // Gauges without a value are omitted.
        let recorded = self.recorded.render();
        let mut text: String = recorded
            .split_inclusive('\n')
            .filter(|line| !line.ends_with(" NaN\n"))
            .collect();
        for row in METRICS {
            put_histogram(row, &counted.buckets, &mut text);
            if row.name == process::CPU {
                text.push_str(&process::cpu(row.meaning));
            }
        }
        text
    }
}

/// Appends the lines of a histogram.
fn put_histogram(row: &MetricRow, buckets: &HashMap<Key, HistogramBuckets>, text: &mut String) {
    let mut series: Vec<(&Key, &HistogramBuckets)> = buckets
        .iter()
        .filter(|(key, _)| key.name() == row.name)
        .collect();
    if series.is_empty() {
        return;
    }
    // The map has no order, but the output should have a stable one.
    series.sort_by_key(|(key, _)| *key);
    let name = row.name;
    put_line(text, format_args!("# HELP {name} {}", row.meaning));
    put_line(text, format_args!("# TYPE {name} histogram"));
    for (key, buckets) in series {
        put_series(key, buckets, text);
    }
    text.push('\n');
}

/// Appends the lines of one series of a histogram.
fn put_series(key: &Key, buckets: &HistogramBuckets, text: &mut String) {
    let name = key.name();
    let labels: Vec<String> = key
        .labels()
        .map(|label| format!("{}=\"{}\"", label.key(), label.value()))
        .collect();
    let mut label_set = String::new();
    let mut label_prefix = String::new();
    if !labels.is_empty() {
        let labels = labels.join(",");
        label_set = format!("{{{labels}}}");
        label_prefix = labels + ",";
    }
    let counts = buckets.counts();
    let bounds = buckets.bounds.iter().map(f64::to_string);
    for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&counts) {
        put_line(
            text,
            format_args!("{name}_bucket{{{label_prefix}le=\"{bound}\"}} {count}"),
        );
    }
    let all = counts.last().copied().unwrap_or(0);
    put_line(
        text,
        format_args!("{name}_sum{label_set} {}", buckets.sum()),
    );
    put_line(text, format_args!("{name}_count{label_set} {all}"));
}

fn put_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a text takes all");
}

impl Default for MetricsRegistry {
    fn default() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        for row in METRICS {
            let name = KeyName::from_const_str(row.name);
            let meaning = SharedString::const_str(row.meaning);
            let unit = row.name.ends_with("_seconds").then_some(Unit::Seconds);
            match row.kind {
                MetricKind::Counter => recorder.describe_counter(name, unit, meaning),
                MetricKind::Gauge => recorder.describe_gauge(name, unit, meaning),
                MetricKind::Histogram(_) => {}
            }
        }
        Self {
            recorder,
            cells: Arc::default(),
            counted: Arc::default(),
        }
    }
}

const WHERE: Metadata<'static> = Metadata::new("scoregate", metrics::Level::INFO, None);

impl MetricsRegistry {
    /// The renderer of the metrics.
    pub fn scrape(&self) -> Scrape {
        let process = ProcessMetrics {
            resident: self.gauge("process_resident_memory_bytes"),
            open_fds: self.gauge("process_open_fds"),
            max_fds: self.gauge("process_max_fds"),
            threads: self.gauge("process_threads"),
            memory_limit: self.gauge("scoregate_memory_limit_bytes"),
            cores: self.gauge("scoregate_cpu_limit_cores"),
        };
        Scrape {
            recorded: self.recorder.handle(),
            counted: Arc::clone(&self.counted),
            process,
        }
    }

    /// Sets the version and the start time in seconds since 1970.
    pub fn set_build_info(&self, version: &'static str, since: u64) {
        declared("scoregate_build_info", &[("version", 1)]);
        let labels = vec![metrics::Label::new("version", version)];
        let info = Key::from_parts("scoregate_build_info", labels);
        self.recorder.register_gauge(&info, &WHERE).set(1.0);
        self.gauge("process_start_time_seconds")
            .set(Duration::from_secs(since).as_secs_f64());
    }

    /// The counter with this name, without labels.
    pub fn counter(&self, name: &'static str) -> Counter {
        declared(name, &[]);
        self.counter_of(&Key::from_static_name(name))
    }

    /// The gauge with this name, without labels.
    pub fn gauge(&self, name: &'static str) -> Gauge {
        declared(name, &[]);
        self.recorder
            .register_gauge(&Key::from_static_name(name), &WHERE)
    }

    /// The histogram with this name, without labels.
    pub fn histogram(&self, name: &'static str) -> Histogram {
        declared(name, &[]);
        self.histogram_of(Key::from_static_name(name))
    }

    fn counter_of(&self, key: &Key) -> Counter {
        let cell = self
            .counted
            .lock()
            .counters
            .entry(key.clone())
            .or_insert_with(|| {
                (
                    CounterCell::new(&self.cells),
                    self.recorder.register_counter(key, &WHERE),
                )
            })
            .0
            .clone();
        Counter::from_arc(Arc::new(cell))
    }

    fn histogram_of(&self, key: Key) -> Histogram {
        let row = METRICS.iter().find(|row| row.name == key.name());
        let Some(MetricKind::Histogram(bounds)) = row.map(|row| row.kind) else {
            panic!("{} is not declared as a histogram", key.name())
        };
        let buckets = self
            .counted
            .lock()
            .buckets
            .entry(key)
            .or_insert_with(|| HistogramBuckets::new(&self.cells, bounds))
            .clone();
        Histogram::from_arc(Arc::new(buckets))
    }

    /// The counters with this name, one per label value.
    pub fn counters<L: FixedLabel>(&self, name: &'static str) -> MetricFamily<Counter, L> {
        self.counters_of(name, &L::words())
    }

    /// The counters with this name, one per configured label value.
    pub fn counters_of<L: MetricLabel>(
        &self,
        name: &'static str,
        words: &[String],
    ) -> MetricFamily<Counter, L> {
        family(name, words, |key| self.counter_of(&key))
    }

    /// The gauges with this name, one per label value.
    pub fn gauges<L: FixedLabel>(&self, name: &'static str) -> MetricFamily<Gauge, L> {
        self.gauges_of(name, &L::words())
    }

    /// The gauges with this name, one per configured label value.
    pub fn gauges_of<L: MetricLabel>(
        &self,
        name: &'static str,
        words: &[String],
    ) -> MetricFamily<Gauge, L> {
        family(name, words, |key| {
            self.recorder.register_gauge(&key, &WHERE)
        })
    }

    /// The histograms with this name, one per label value.
    pub fn histograms<L: FixedLabel>(&self, name: &'static str) -> MetricFamily<Histogram, L> {
        self.histograms_of(name, &L::words())
    }

    /// The histograms with this name, one per configured label value.
    pub fn histograms_of<L: MetricLabel>(
        &self,
        name: &'static str,
        words: &[String],
    ) -> MetricFamily<Histogram, L> {
        family(name, words, |key| self.histogram_of(key))
    }

    /// The counters with this name, one per pair of label values.
    pub fn counter_matrix<A: MetricLabel, B: MetricLabel>(
        &self,
        name: &'static str,
        rows: &[String],
        columns: &[String],
    ) -> CounterMatrix<A, B> {
        declared(name, &[(A::NAME, rows.len()), (B::NAME, columns.len())]);
        let handles = rows
            .iter()
            .flat_map(|row| {
                columns.iter().map(move |column| {
                    let labels = vec![
                        metrics::Label::new(A::NAME, row.clone()),
                        metrics::Label::new(B::NAME, column.clone()),
                    ];
                    self.counter_of(&Key::from_parts(name, labels))
                })
            })
            .collect();
        CounterMatrix::new(handles, columns.len())
    }
}

fn family<H, L: MetricLabel>(
    name: &'static str,
    words: &[String],
    register: impl Fn(Key) -> H,
) -> MetricFamily<H, L> {
    declared(name, &[(L::NAME, words.len())]);
    let key =
        |word: &String| Key::from_parts(name, vec![metrics::Label::new(L::NAME, word.clone())]);
    MetricFamily::new(words.iter().map(|word| register(key(word))).collect())
}

/// Panics if a metric is not in the table or has other labels there. Such a bug is found at the first start.
fn declared(name: &str, labels: &[(&str, usize)]) {
    let row = METRICS.iter().find(|row| row.name == name);
    let names: Vec<&str> = labels.iter().map(|(label, _)| *label).collect();
    assert!(
        row.is_some_and(|row| row.labels == names),
        "{name} with labels {names:?} is not declared"
    );
    for (label, words) in labels {
        let fits = LABELS
            .iter()
            .any(|row| row.name == *label && *words <= row.most);
        assert!(fits, "label {label} has {words} words, more than declared");
    }
}

#[cfg(test)]
mod tests {
    use crate::telemetry::metrics::max_series;

    use super::*;

    #[test]
    fn the_largest_possible_number_of_series_is_bounded() {
        assert!(max_series() <= 3_000, "{}", max_series());
    }

    #[test]
    fn every_metric_is_named_after_its_kind_and_has_declared_labels() {
        for row in METRICS {
            // Process metrics have standard names.
            let of_process = row.name.starts_with("process_");
            assert!(
                row.name.starts_with("scoregate_") || of_process,
                "{}",
                row.name
            );
            assert_eq!(
                row.name.ends_with("_total"),
                row.kind == MetricKind::Counter,
                "{}",
                row.name
            );
            assert!(
                row.labels
                    .iter()
                    .all(|name| LABELS.iter().any(|label| label.name == *name)),
                "{}",
                row.name
            );
            assert_eq!(
                METRICS
                    .iter()
                    .filter(|other| other.name == row.name)
                    .count(),
                1
            );
        }
    }

    /// The value of a metric without labels.
    fn value(text: &str, name: &str) -> f64 {
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {text}"))
            .parse()
            .unwrap()
    }

    #[test]
    fn counted_values_are_rendered() {
        let registry = MetricsRegistry::default();
        registry.counter("scoregate_panics_total").increment(2);
        let histogram = "scoregate_upstream_duration_seconds";
        registry.histogram(histogram).record(0.3);
        let text = registry.scrape().render();
        for line in [
            "scoregate_panics_total 2\n".to_owned(),
            format!("{histogram}_bucket{{le=\"0.5\"}} 1\n"),
            format!("{histogram}_sum 0.3\n"),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
    }

    #[test]
    fn process_and_build_metrics_are_rendered() {
        let registry = MetricsRegistry::default();
        registry.set_build_info("1.2.3", 1_795_000_000);
        let text = registry.scrape().render();
        assert!(
            text.contains("scoregate_build_info{version=\"1.2.3\"} 1"),
            "{text}"
        );
        let files = value(&text, "process_open_fds");
        for (name, least) in [
            ("process_start_time_seconds", 1_794_999_999.0),
            ("process_resident_memory_bytes", 1e6),
            ("process_open_fds", 3.0),
            ("process_max_fds", files),
            ("process_threads", 1.0),
        ] {
            assert!(value(&text, name) >= least, "{name}: {text}");
        }
        assert!(text.contains(&format!("# TYPE {} counter", process::CPU)));
        let before = value(&text, process::CPU);
        let mut sum = 0_u64;
        while value(&registry.scrape().render(), process::CPU) <= before {
            sum = (0..1_000_000).fold(sum, |sum, number| sum.rotate_left(3) ^ number);
            std::hint::black_box(sum);
        }
    }

    #[test]
    #[should_panic(expected = "is not declared")]
    fn undeclared_metric_panics() {
        MetricsRegistry::default()
            .counter("scoregate_surprise_total")
            .increment(1);
    }
}
