//! Reads `service.deprecated_at`, `service.sunset_at` and `service.deprecation_link`.

use toml::Value;

use crate::gateway::Deprecation;
use scoregate_base::clock::Wall;

use crate::config::ValueKind;
use crate::config::config_reader::ConfigReader;

const DEPRECATED: &str = "service.deprecated_at";
const SUNSET: &str = "service.sunset_at";
const LINK: &str = "service.deprecation_link";

pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Deprecation {
    let deprecated_at = instant(reading, DEPRECATED);
    let sunset_at = instant(reading, SUNSET);
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
    let Some(value) = reading.maybe(LINK) else {
        return deprecation;
    };
    if reading.maybe(DEPRECATED).is_none() {
        reading.reject(LINK, format!("set {DEPRECATED} too"));
    }
    let address = value
        .as_str()
        .filter(|text| text.starts_with("https://") || text.starts_with("http://"));
    let described = address.and_then(|address| deprecation.clone().described_at(address));
    described.unwrap_or_else(|| {
        let remedy =
            "write a URL that begins with https:// or http://, in ASCII and without spaces";
        reading.reject(LINK, remedy);
        deprecation
    })
}

/// Reads an instant, given as a string or a TOML datetime.
fn instant(reading: &mut ConfigReader<'_>, path: &str) -> Option<Wall> {
    let read = match reading.maybe(path)? {
        Value::String(text) => Wall::parse_rfc3339(text),
        Value::Datetime(at) => Wall::parse_rfc3339(&at.to_string()),
        Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Array(_)
        | Value::Table(_) => None,
    };
    reading.as_kind(path, ValueKind::Instant, read)
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
