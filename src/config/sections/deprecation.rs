//! Reads `service.deprecated_at`, `service.sunset_at` and `service.deprecation_link`.

use crate::gateway::Deprecation;
use scoregate_base::clock::Wall;

use super::site::plain_url;
use crate::config::config_reader::ConfigReader;

const DEPRECATED: &str = "service.deprecated_at";
const SUNSET: &str = "service.sunset_at";
const LINK: &str = "service.deprecation_link";

pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Deprecation {
    let deprecated_at: Option<Wall> = reading.optional(DEPRECATED);
    let sunset_at = reading.optional(SUNSET);
    if let Some(from) = deprecated_at
        && let Some(until) = sunset_at
        && until < from
    {
        reading.reject(
            SUNSET,
            format!("write a timestamp that is not before {DEPRECATED}"),
        );
    }
    let deprecation = Deprecation::new(deprecated_at, sunset_at);
    if reading.maybe(LINK).is_some() && reading.maybe(DEPRECATED).is_none() {
        reading.reject(LINK, format!("set {DEPRECATED} too"));
    }
    let described = plain_url(reading, LINK).and_then(|at| deprecation.clone().described_at(&at));
    described.unwrap_or(deprecation)
}

#[cfg(test)]
mod tests {
    use crate::config::tests::accepted;

    #[test]
    fn deprecation_times_are_strings_or_toml_datetimes() {
        let text = "[service]\ndeprecated_at = \"2026-11-22T00:00:00Z\"\nsunset_at = 2027-06-30T22:00:00+02:00\n\
                    deprecation_link = \"https://example.org/end\"";
        let headers = format!("{:?}", accepted(text).deprecation);
        for part in [
            "@1795305600",
            "Wed, 30 Jun 2027 20:00:00 GMT",
            "<https://example.org/end>",
        ] {
            assert!(headers.contains(part), "{part} in {headers}");
        }
        accepted(
            "[service]\ndeprecated_at = \"2026-11-22T00:00:00Z\"\nsunset_at = \"2026-11-22T00:00:00Z\"",
        );
    }
}
