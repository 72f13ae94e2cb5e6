//! Reads `traces.*`.

use scoregate_observe::traces::{CollectorEndpoint, TraceConfig};

use crate::config::config_reader::ConfigReader;

const ENDPOINT: &str = "traces.endpoint";
const SAMPLE: &str = "traces.sample_one_in";

/// `None` without an endpoint.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<TraceConfig> {
    let one_in = reading.number(SAMPLE);
    let Some(value) = reading.maybe(ENDPOINT) else {
        reading.without_effect(
            &[SAMPLE],
            &format!("this setting needs a collector: write {ENDPOINT}"),
        );
        return None;
    };
    match CollectorEndpoint::parse(&reading.text(ENDPOINT)) {
        Ok(endpoint) => Some(TraceConfig { endpoint, one_in }),
        Err(bad) => {
            // The value is not printed: it may contain a credential.
            let found = (!value.to_string().contains(['@', '?'])).then_some(value);
            reading.problem(ENDPOINT, found, bad.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{read_text, resolve};

    fn problems(text: &str) -> Vec<String> {
        let written = read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap();
        resolve(&written).err().map_or(Vec::new(), |all| {
            all.0.iter().map(ToString::to_string).collect()
        })
    }

    #[test]
    fn spans_are_exported_only_with_an_endpoint() {
        let config =
            |text: &str| resolve(&read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap());
        assert!(config("").unwrap().traces.is_none());
        let endpoint = "[traces]\nendpoint = \"http://127.0.0.1:4318/v1/traces\"";
        assert_eq!(config(endpoint).unwrap().traces.unwrap().one_in, 100);
        let never = config(&format!("{endpoint}\nsample_one_in = 0")).unwrap();
        assert_eq!(never.traces.unwrap().one_in, 0);
    }

    #[test]
    fn unusable_endpoints_are_reported_without_their_credentials() {
        for (text, words) in [
            (
                "traces.endpoint = \"https://collector/v1/traces\"",
                "over http only",
            ),
            (
                "traces.endpoint = \"127.0.0.1:4318\"",
                "such as \"http://127.0.0.1:4318/v1/traces\"",
            ),
            (
                "traces.endpoint = \"http://user:secret@collector/\"",
                "without credentials",
            ),
            (
                "traces.endpoint = \"http://collector/?token=secret\"",
                "without credentials",
            ),
            ("traces.sample_one_in = 10", "write traces.endpoint"),
        ] {
            let found = problems(text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].contains(words) && !found[0].contains("secret"),
                "{found:?}"
            );
        }
    }
}
