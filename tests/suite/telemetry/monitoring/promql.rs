//! The metrics named by a query, and the query without its threshold, both determined from its text. Supports the
//! subset of the language that our queries use; Prometheus itself validates queries.

use std::collections::BTreeSet;

/// Keywords that precede a list of labels.
const BEFORE_LABELS: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];
/// Other keywords.
const WORDS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
const COMPARISONS: [&str; 6] = [" > ", " < ", " >= ", " <= ", " == ", " != "];

/// The text with everything in braces, brackets and quotes blanked out.
fn outside(query: &str) -> String {
    let mut depth = 0;
    let mut quoted = false;
    let blank = |letter: char| {
        match letter {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ if !quoted && depth == 0 => return letter,
            _ => {}
        }
        ' '
    };
    query.chars().map(blank).collect()
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == ':'
}

/// The names of all metrics of a query.
pub fn metrics(query: &str) -> BTreeSet<String> {
    let text = outside(query);
    let mut rest = text.as_str();
    let mut found = BTreeSet::new();
    while let Some(start) = rest.find(is_of_a_name) {
        rest = &rest[start..];
        let end = rest
            .find(|letter| !is_of_a_name(letter))
            .unwrap_or(rest.len());
        let word;
        (word, rest) = rest.split_at(end);
        // An aggregation has its labels before its operand.
        let is_called = ["(", "by (", "without ("]
            .iter()
            .any(|next| rest.trim_start().starts_with(next));
        if BEFORE_LABELS.contains(&word) {
            rest = rest.split_once(')').map_or("", |(_, behind)| behind);
        } else if !is_called
            && !WORDS.contains(&word)
            && !word.starts_with(|first: char| first.is_ascii_digit())
        {
            found.insert(word.to_owned());
        }
    }
    found
}

/// The query of an alert as a boolean (0 or 1 per series), which otherwise returns nothing while all is well.
pub fn without_threshold(query: &str) -> String {
    if let Some(metric) = query
        .strip_prefix("absent(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return metric.to_owned();
    }
    let mut boolean = query.to_owned();
    for comparison in COMPARISONS {
        boolean = boolean.replace(comparison, &format!("{comparison}bool "));
    }
    boolean
}

/// Substitutes variables as Grafana does, with a range that covers the whole test.
pub fn with_variables_replaced(query: &str) -> String {
    query
        .replace("$__rate_interval", "5m")
        .replace("$instance", ".*")
        .replace("$tier", ".*")
}

#[test]
fn only_the_metrics_of_a_query_are_found() {
    let of = |query: &str| metrics(query).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(
        of(r#"sum by (le, tier) (rate(a_bucket{b="c > d{"}[5m])) / 14.4"#),
        "a_bucket"
    );
    assert_eq!(
        of("job:a:b and on (job) c > bool 1e3 or min_over_time(d[2m])"),
        "c d job:a:b"
    );
    assert_eq!(of("1 - sum(e) without (x) / time()"), "e");
    assert_eq!(of("max without (x) (f) == 2"), "f");
}

#[test]
fn a_threshold_becomes_a_boolean_query() {
    assert_eq!(
        without_threshold("a > 1 and b{c=~\"d\"} == 0"),
        "a > bool 1 and b{c=~\"d\"} == bool 0"
    );
    assert_eq!(without_threshold("absent(up{a=\"b\"})"), "up{a=\"b\"}");
}
