//! Reads `traces.*`.

use scoregate_observe::traces::{CollectorEndpoint, TraceConfig};

use crate::config::config_reader::ConfigReader;

const ENDPOINT: &str = "traces.endpoint";
const SAMPLE: &str = "traces.sample_one_in";

/// Reads the trace settings. `None` if no endpoint is set.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<TraceConfig> {
    let one_in = reading.get(SAMPLE);
    let Some(value) = reading.maybe(ENDPOINT) else {
        reading.without_effect(
            &[SAMPLE],
            &format!("this setting needs a collector: write {ENDPOINT}"),
        );
        return None;
    };
    match CollectorEndpoint::parse(&reading.optional::<String>(ENDPOINT)?) {
        Ok(endpoint) => Some(TraceConfig { endpoint, one_in }),
        Err(bad) => {
            // A value that may contain a credential is not printed.
            let found = (!value.to_string().contains(['@', '?'])).then_some(value);
            reading.problem(ENDPOINT, found, bad.to_string());
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::tests::accepted;

    #[test]
    fn spans_are_exported_only_with_an_endpoint() {
        assert!(accepted("").traces.is_none());
        let endpoint = "[traces]\nendpoint = \"http://127.0.0.1:4318/v1/traces\"";
        assert_eq!(accepted(endpoint).traces.unwrap().one_in, 100);
        let never = accepted(&format!("{endpoint}\nsample_one_in = 0"));
        assert_eq!(never.traces.unwrap().one_in, 0);
    }
}
