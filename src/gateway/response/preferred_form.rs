//! Decides from the weights in `Accept` whether the client prefers a form to the default form.

use http::{HeaderMap, header::ACCEPT};

use crate::cache::quality;

/// q-values in thousandths.
#[derive(Default)]
struct AcceptedForms {
    form: Option<u16>,
    default: Option<u16>,
    group: Option<u16>,
    any: Option<u16>,
}

/// Two media types, and the range that contains both. The first type is preferred if its weight is higher, or if the weights are
/// equal and it is named explicitly.
type OfferedForms = [&'static str; 3];

/// Whether the client prefers problem details to plain JSON.
pub fn prefers_problem(headers: &HeaderMap) -> bool {
    let offered = [
        "application/problem+json",
        "application/json",
        "application/*",
    ];
    prefers(headers, offered)
}

/// Whether the client prefers Markdown to HTML.
pub fn prefers_markdown(headers: &HeaderMap) -> bool {
    prefers(headers, ["text/markdown", "text/html", "text/*"])
}

fn prefers(headers: &HeaderMap, offered: OfferedForms) -> bool {
    let mut accepted = AcceptedForms::default();
    // Iterating over a request's few headers costs less than hashing a name to look it up.
    for (name, line) in headers {
        if *name != ACCEPT {
            continue;
        }
        let ranges = line.to_str().unwrap_or_default().split(',');
        ranges.for_each(|range| accepted.add(range, offered));
    }
    accepted.prefers_form()
}

impl AcceptedForms {
    /// Adds a media range. Malformed ranges are ignored.
    fn add(&mut self, range: &str, [form, default, group]: OfferedForms) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find(|parameter| parameter.starts_with(['q', 'Q']));
        let Some(weight) = weight.map_or(Some(1_000), quality) else {
            return;
        };
        let accepted = match name.as_str() {
            name if name == form => &mut self.form,
            name if name == default => &mut self.default,
            name if name == group => &mut self.group,
            "*/*" => &mut self.any,
            _ => return,
        };
        *accepted = Some(accepted.map_or(weight, |known| known.max(weight)));
    }

    fn prefers_form(&self) -> bool {
        let form = self.weight(self.form);
        let default = self.weight(self.default);
        form > default || (form > 0 && form == default && self.form.is_some())
    }

    /// The weight of a form, from its name or from a range that covers it.
    fn weight(&self, named: Option<u16>) -> u16 {
        named.or(self.group).or(self.any).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn prefers(lines: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, HeaderValue::from_static(line));
        }
        prefers_problem(&headers)
    }

    #[test]
    fn the_form_with_the_higher_weight_is_sent_and_at_equal_weights_a_problem_only_if_it_is_named()
    {
        for problem in [
            &["application/problem+json"][..],
            &["Application/Problem+JSON;q=0.001"],
            &["application/json;q=0.4, application/problem+json;q=0.5"],
            &["application/json, application/problem+json"],
            &["application/json", "application/problem+json"],
            &["*/*, application/problem+json"],
            &["application/problem+json; charset=utf-8; q=0.5, */*;q=0.1"],
            &["application/json;q=0, */*"],
            &["application/json;q=0.1, application/*;q=0.9"],
            &["application/json; Q=0.2, application/problem+json;q=0.3"],
            &["application/json;q=2, application/problem+json;q=0.3"],
        ] {
            assert!(prefers(problem), "{problem:?}");
        }
        for json in [
            &[][..],
            &["*/*"],
            &["application/*"],
            &["application/json"],
            &["text/html"],
            &["application/problem+jsonx"],
            &["application/problem+json;q=0"],
            &["application/problem+json;q=0.0, */*"],
            &["application/json, application/problem+json;q=0.5"],
            &["application/problem+json;q=0.5, */*"],
            &["application/problem+json;q=0.8, application/json;q=0.9"],
            &["application/problem+json;q=x"],
            &["application/problem+json;q=0.5, application/json;q=0.5001, */*;q=0.6"],
        ] {
            assert!(!prefers(json), "{json:?}");
        }
    }
}
