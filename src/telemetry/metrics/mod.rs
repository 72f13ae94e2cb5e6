//! Metrics: handles made from THE table of them, and the text that is scraped.
//!
//! Handles are made once, after the recorder is there; counting is an atomic step. Not for: what there is (`table.rs`), nor
//! for deciding what is counted when.

mod reference;
mod table;

use std::marker::PhantomData;
use std::time::Duration;

pub use metrics::Counter;
use metrics::{Gauge, Histogram, Key, KeyName, Metadata, Recorder as _, SharedString, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use super::process::{self, Process};
pub use reference::reference;
pub use table::{Kind, LABELS, LabelRow, METRICS, Row, most_series};

/// A closed set of words that can be a label. Implemented next to the enum whose words they are.
pub trait Label: Copy {
    /// The label's name in [`LABELS`].
    const NAME: &'static str;
    /// Its place in the list of words.
    fn index(self) -> usize;
}

/// Where all metrics of one program live. Two programs in one process do not mix.
pub struct Registry {
    recorder: PrometheusRecorder,
}

/// What renders the metrics.
#[derive(Clone)]
pub struct Scrape {
    recorded: PrometheusHandle,
    process: Process,
}

impl Scrape {
    /// The text that Prometheus reads.
    pub fn render(&self) -> String {
        self.process.look();
        let mut text = self.recorded.render();
        if let Some(row) = METRICS.iter().find(|row| row.name == process::CPU) {
            text.push_str(&process::cpu(row.meaning));
        }
        text
    }

    /// Folds histogram samples together. To be called every few seconds, or they pile up until the next scrape.
    pub fn fold(&self) {
        self.recorded.run_upkeep();
    }
}

impl Default for Registry {
    fn default() -> Self {
        let mut builder = PrometheusBuilder::new();
        for row in METRICS {
            if let Kind::Histogram(bounds) = row.kind {
                builder = builder
                    .set_buckets_for_metric(Matcher::Full(row.name.into()), bounds)
                    .expect("no histogram of the table is without bounds");
            }
        }
        let recorder = builder.build_recorder();
        for row in METRICS {
            let (name, meaning) = (KeyName::from_const_str(row.name), SharedString::const_str(row.meaning));
            let unit = row.name.ends_with("_seconds").then_some(Unit::Seconds);
            match row.kind {
                Kind::Counter => recorder.describe_counter(name, unit, meaning),
                Kind::Gauge => recorder.describe_gauge(name, unit, meaning),
                Kind::Histogram(_) => recorder.describe_histogram(name, unit, meaning),
            }
        }
        Self { recorder }
    }
}

const WHERE: Metadata<'static> = Metadata::new("scoregate", metrics::Level::INFO, None);

impl Registry {
    /// What renders them.
    pub fn scrape(&self) -> Scrape {
        let process = Process {
            resident: self.gauge("process_resident_memory_bytes"),
            open_fds: self.gauge("process_open_fds"),
            max_fds: self.gauge("process_max_fds"),
            threads: self.gauge("process_threads"),
        };
        Scrape { recorded: self.recorder.handle(), process }
    }

    /// Says what runs, and since when: so many seconds since 1970.
    pub fn tell_build(&self, version: &'static str, since: u64) {
        declared("scoregate_build_info", &[("version", 1)]);
        let labels = vec![metrics::Label::new("version", version)];
        let info = Key::from_parts("scoregate_build_info", labels);
        self.recorder.register_gauge(&info, &WHERE).set(1.0);
        self.gauge("process_start_time_seconds").set(Duration::from_secs(since).as_secs_f64());
    }

    /// The counter of that name, which has no labels.
    pub fn counter(&self, name: &'static str) -> Counter {
        declared(name, &[]);
        self.recorder.register_counter(&Key::from_static_name(name), &WHERE)
    }

    /// The gauge of that name, which has no labels.
    pub fn gauge(&self, name: &'static str) -> Gauge {
        declared(name, &[]);
        self.recorder.register_gauge(&Key::from_static_name(name), &WHERE)
    }

    /// The histogram of that name, which has no labels.
    pub fn histogram(&self, name: &'static str) -> Histogram {
        declared(name, &[]);
        self.recorder.register_histogram(&Key::from_static_name(name), &WHERE)
    }

    /// The counters of that name, one for each word of a label.
    pub fn counters<L: Label>(&self, name: &'static str, words: &[String]) -> Family<Counter, L> {
        family(name, words, |key| self.recorder.register_counter(key, &WHERE))
    }

    /// The gauges of that name, one for each word of a label.
    pub fn gauges<L: Label>(&self, name: &'static str, words: &[String]) -> Family<Gauge, L> {
        family(name, words, |key| self.recorder.register_gauge(key, &WHERE))
    }

    /// The histograms of that name, one for each word of a label.
    pub fn histograms<L: Label>(&self, name: &'static str, words: &[String]) -> Family<Histogram, L> {
        family(name, words, |key| self.recorder.register_histogram(key, &WHERE))
    }

    /// The counters of that name, one for each pair of words of two labels.
    pub fn table<A: Label, B: Label>(
        &self,
        name: &'static str,
        rows: &[String],
        columns: &[String],
    ) -> Table<A, B> {
        declared(name, &[(A::NAME, rows.len()), (B::NAME, columns.len())]);
        let make = |row: &String, column: &String| {
            let labels =
                vec![metrics::Label::new(A::NAME, row.clone()), metrics::Label::new(B::NAME, column.clone())];
            self.recorder.register_counter(&Key::from_parts(name, labels), &WHERE)
        };
        let handles =
            rows.iter().flat_map(|row| columns.iter().map(move |column| make(row, column))).collect();
        Table { handles, columns: columns.len(), of: PhantomData }
    }
}

fn family<H, L: Label>(name: &'static str, words: &[String], register: impl Fn(&Key) -> H) -> Family<H, L> {
    declared(name, &[(L::NAME, words.len())]);
    let key = |word: &String| Key::from_parts(name, vec![metrics::Label::new(L::NAME, word.clone())]);
    Family { handles: words.iter().map(|word| register(&key(word))).collect(), of: PhantomData }
}

/// A metric that is not in the table, or with other labels than declared, is a defect that the first start shows.
fn declared(name: &str, labels: &[(&str, usize)]) {
    let row = METRICS.iter().find(|row| row.name == name);
    let names: Vec<&str> = labels.iter().map(|(label, _)| *label).collect();
    assert!(row.is_some_and(|row| row.labels == names), "{name} with labels {names:?} is not declared");
    for (label, words) in labels {
        let fits = LABELS.iter().any(|row| row.name == *label && *words <= row.most);
        assert!(fits, "label {label} has {words} words, more than declared");
    }
}

/// Handles of one metric, by the word of a label.
pub struct Family<H, L> {
    handles: Vec<H>,
    of: PhantomData<fn(L)>,
}

impl<H, L: Label> Family<H, L> {
    /// The handle of a word. `None` cannot happen for a label that lists all its words.
    pub fn of(&self, word: L) -> Option<&H> {
        self.handles.get(word.index())
    }
}

/// Counters of one metric, by the words of two labels.
pub struct Table<A, B> {
    handles: Vec<Counter>,
    columns: usize,
    of: PhantomData<fn(A, B)>,
}

impl<A: Label, B: Label> Table<A, B> {
    /// Counts one.
    pub fn count(&self, row: A, column: B) {
        if let Some(counter) = self.handles.get(row.index() * self.columns + column.index()) {
            counter.increment(1);
        }
    }
}

impl<L: Label> Family<Counter, L> {
    /// Counts one.
    pub fn count(&self, word: L) {
        self.add(word, 1);
    }

    /// Counts several.
    pub fn add(&self, word: L, by: u64) {
        if let Some(counter) = self.of(word) {
            counter.increment(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_possible_number_of_series_is_bounded() {
        assert!(most_series() <= 3_000, "{}", most_series());
    }

    #[test]
    fn every_metric_is_named_after_its_kind_and_has_declared_labels() {
        for row in METRICS {
            // What every process tells has names that all programs share.
            let of_process = row.name.starts_with("process_");
            assert!(row.name.starts_with("scoregate_") || of_process, "{}", row.name);
            assert_eq!(row.name.ends_with("_total"), row.kind == Kind::Counter, "{}", row.name);
            assert!(
                row.labels.iter().all(|name| LABELS.iter().any(|label| label.name == *name)),
                "{}",
                row.name
            );
            assert_eq!(METRICS.iter().filter(|other| other.name == row.name).count(), 1);
        }
    }

    #[test]
    fn what_is_counted_is_rendered() {
        let registry = Registry::default();
        registry.counter("scoregate_panics_total").increment(2);
        registry.histogram("scoregate_upstream_duration_seconds").record(0.3);
        let text = registry.scrape().render();
        assert!(text.contains("scoregate_panics_total 2"), "{text}");
        assert!(text.contains("scoregate_upstream_duration_seconds_bucket{le=\"0.5\"} 1"), "{text}");
    }

    #[test]
    fn the_process_tells_what_it_takes_and_what_it_is() {
        let registry = Registry::default();
        registry.tell_build("1.2.3", 1_795_000_000);
        let text = registry.scrape().render();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
            line.unwrap_or_else(|| panic!("{name} in {text}")).split(' ').nth(1).unwrap().parse().unwrap()
        };
        assert!(text.contains("scoregate_build_info{version=\"1.2.3\"} 1"), "{text}");
        assert!((value("process_start_time_seconds") - 1_795_000_000.0).abs() < 1.0);
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") >= value("process_open_fds"));
        assert!(value("process_threads") >= 1.0);
        let before = value(process::CPU);
        assert!(text.contains(&format!("# TYPE {} counter", process::CPU)));
        let mut sum = 0_u64;
        let later = loop {
            sum = (0..1_000_000).fold(sum, |sum, number| sum.rotate_left(3) ^ number);
            let again = registry.scrape().render();
            let line = again.lines().find(|line| line.starts_with("process_cpu_seconds_total ")).unwrap();
            let later: f64 = line.split(' ').nth(1).unwrap().parse().unwrap();
            if later > before {
                break later;
            }
        };
        assert!(later > before, "{sum}");
    }

    #[test]
    #[should_panic(expected = "is not declared")]
    fn a_metric_that_is_not_in_the_table_is_noticed_at_once() {
        Registry::default().counter("scoregate_surprise_total").increment(1);
    }
}
