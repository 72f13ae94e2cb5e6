//! Reads `proxies.*`: trusted proxies and the header in which they send the client address.

use toml::Value;

use scoregate_base::address::{ClientHeader, Network, Networks, Proxies};

use crate::config::config_reader::ConfigReader;

pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Proxies {
    let trusted = networks(reading, "proxies.trusted");
    if trusted.hold_everybody() {
        let remedy = "this covers all addresses, so any client could choose its address; write the proxies' own addresses";
        reading.reject("proxies.trusted", remedy);
    }
    let header = match reading.word("proxies.header").as_str() {
        "none" => ClientHeader::Nothing,
        _ => ClientHeader::XForwardedFor,
    };
    Proxies { trusted, header }
}

/// Reads a list of networks; each invalid entry is a separate problem.
pub(in crate::config) fn networks(reading: &mut ConfigReader<'_>, path: &str) -> Networks {
    let written = reading
        .value(path, |value| value.as_array().cloned())
        .unwrap_or_default();
    let read = written
        .iter()
        .filter_map(|entry| network(reading, path, entry));
    read.collect()
}

fn network(reading: &mut ConfigReader<'_>, path: &str, entry: &Value) -> Option<Network> {
    let Some(text) = entry.as_str() else {
        reading.problem(
            path,
            Some(entry),
            crate::config::ValueKind::Networks.remedy(),
        );
        return None;
    };
    text.parse::<Network>()
        .inspect_err(|none| reading.problem(path, Some(entry), none.to_string()))
        .ok()
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, ConfigProblems, read_environment, read_text, resolve};

    use super::*;

    fn config(text: &str) -> Result<Config, ConfigProblems> {
        resolve(&read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap())
    }

    fn lists(networks: &Networks, address: &str) -> bool {
        networks.contains(address.parse().unwrap())
    }

    #[test]
    fn no_proxy_is_trusted_by_default() {
        let config = config("").unwrap();
        assert_eq!(config.proxies.header, ClientHeader::XForwardedFor);
        assert_eq!(config.proxies.trusted, Networks::default());
        assert_eq!(config.server.connection.proxy_protocol, Networks::default());
    }

    #[test]
    fn proxy_settings_are_read() {
        let config = config(
            "[proxies]\ntrusted = [\"10.0.0.0/8\", \"2001:db8::1\"]\nheader = \"none\"\nproxy_protocol = [\"192.0.2.1\"]",
        )
        .unwrap();
        assert_eq!(config.proxies.header, ClientHeader::Nothing);
        assert!(
            lists(&config.proxies.trusted, "10.1.2.3")
                && lists(&config.proxies.trusted, "2001:db8::1")
        );
        assert!(!lists(&config.proxies.trusted, "192.0.2.1"));
        assert!(lists(&config.server.connection.proxy_protocol, "192.0.2.1"));
    }

    #[test]
    fn lists_in_the_environment_are_separated_by_commas() {
        let of = |text: &str| {
            let pairs = [("SCOREGATE_PROXIES_TRUSTED".to_owned(), text.to_owned())];
            let mut written =
                read_text("upstream = \"built-in\"\nproxies.trusted = [\"192.0.2.9\"]").unwrap();
            written.overlay(read_environment(pairs.into_iter()));
            resolve(&written).map(|config| config.proxies.trusted)
        };
        let two = of("10.0.0.0/8, 2001:db8::1").unwrap();
        assert!(lists(&two, "10.1.2.3") && lists(&two, "2001:db8::1") && !lists(&two, "192.0.2.9"));
        assert_eq!(
            (of("").unwrap(), of(" ").unwrap()),
            (Networks::default(), Networks::default())
        );
        for bad in ["10.0.0.0/8,", "7", "true", "10.0.0.0/8;192.0.2.1"] {
            let problems = of(bad).unwrap_err().to_string();
            assert!(
                problems.starts_with("proxies.trusted (from SCOREGATE_PROXIES_TRUSTED): found "),
                "{problems}"
            );
        }
    }

    #[test]
    fn every_invalid_network_is_rejected_with_the_remedy() {
        let problems = config(
            "[proxies]\ntrusted = [\"10.0.0.1/8\", \"localhost\", 7, \"192.0.2.1\"]\nheader = \"x-real-ip\"\nproxy_protocol = \"10.0.0.1\"",
        )
        .unwrap_err();
        let lines: Vec<_> = problems.0.iter().map(ToString::to_string).collect();
        for (path, value, remedy) in [
            ("proxies.trusted", "\"10.0.0.1/8\"", "write \"10.0.0.0/8\""),
            ("proxies.trusted", "\"localhost\"", "write an address"),
            ("proxies.trusted", "found 7", "write a list"),
            ("proxies.header", "\"x-real-ip\"", "\"none\""),
            ("proxies.proxy_protocol", "\"10.0.0.1\"", "write a list"),
        ] {
            let is_reported = |line: &&String| {
                line.starts_with(path) && line.contains(value) && line.contains(remedy)
            };
            assert!(
                lines.iter().any(|line| is_reported(&line)),
                "{path} {value} {remedy} in {lines:#?}"
            );
        }
        assert_eq!(lines.len(), 5, "{lines:#?}");
    }

    #[test]
    fn networks_that_cover_all_addresses_are_rejected() {
        for everybody in [
            "[\"0.0.0.0/0\"]",
            "[\"10.0.0.0/8\", \"::/0\"]",
            "[\"0.0.0.0/1\", \"128.0.0.0/1\"]",
        ] {
            let problems = config(&format!("proxies.trusted = {everybody}"))
                .unwrap_err()
                .to_string();
            assert!(
                problems.starts_with("proxies.trusted: found [")
                    && problems.contains("own addresses"),
                "{problems}"
            );
            assert!(
                config(&format!("proxies.proxy_protocol = {everybody}")).is_ok(),
                "a port behind a balancer alone"
            );
        }
    }
}
