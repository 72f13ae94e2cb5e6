//! Selects the form of an error that the client prefers, by the weights in `Accept`.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::cache::quality;

/// q-values in thousandths, each from the most specific media range that covers the form.
#[derive(Default)]
struct AcceptedForms {
    json: Option<u16>,
    problem: Option<u16>,
    application: Option<u16>,
    any: Option<u16>,
}

/// Whether the client prefers `application/problem+json` to `application/json`: by a higher weight, or by its name if
/// the weights are equal.
pub(crate) fn prefers_problem(headers: &HeaderMap) -> bool {
    let mut accepted = AcceptedForms::default();
    // A walk over the few headers of a request costs less than the hash for a lookup.
    for (name, line) in headers {
        if *name != ACCEPT {
            continue;
        }
        let ranges = line.to_str().unwrap_or_default().split(',');
        ranges.for_each(|range| accepted.add(range));
    }
    accepted.prefers_problem()
}

impl AcceptedForms {
    /// Malformed ranges are ignored.
    fn add(&mut self, range: &str) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find(|parameter| parameter.starts_with(['q', 'Q']));
        let Some(weight) = weight.map_or(Some(1_000), quality) else {
            return;
        };
        let form = match name.as_str() {
            "application/json" => &mut self.json,
            "application/problem+json" => &mut self.problem,
            "application/*" => &mut self.application,
            "*/*" => &mut self.any,
            _ => return,
        };
        *form = Some(form.map_or(weight, |known| known.max(weight)));
    }

    fn prefers_problem(&self) -> bool {
        let json = self.weight(self.json);
        let problem = self.weight(self.problem);
        problem > json || (problem > 0 && problem == json && self.problem.is_some())
    }

    /// The weight of a form, from its name or from a range that covers it.
    fn weight(&self, named: Option<u16>) -> u16 {
        named.or(self.application).or(self.any).unwrap_or(0)
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
