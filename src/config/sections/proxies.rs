//! Reads `proxies.*`: trusted proxies and the header in which they send the client address.

use toml::Value;

use scoregate_base::address::{ClientHeader, Network, Networks, Proxies};

use crate::config::config_reader::ConfigReader;

pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Proxies {
    let trusted = networks(reading, "proxies.trusted");
    if trusted.hold_everybody() {
        let remedy = "this covers all addresses, so any client could claim any address; write the proxies' own addresses";
        reading.reject("proxies.trusted", remedy);
    }
    let header = match reading.get::<String>("proxies.header").as_str() {
        "none" => ClientHeader::Nothing,
        _ => ClientHeader::XForwardedFor,
    };
    Proxies { trusted, header }
}

/// Reads a list of networks. Each invalid entry is a separate problem.
pub(in crate::config) fn networks(reading: &mut ConfigReader<'_>, path: &str) -> Networks {
    let written: Vec<Value> = reading.get(path);
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
    use super::*;
    use crate::config::tests::{accepted, with_variable};

    fn lists(networks: &Networks, address: &str) -> bool {
        networks.contains(address.parse().unwrap())
    }

    #[test]
    fn no_proxy_is_trusted_by_default() {
        let config = accepted("");
        assert_eq!(config.proxies.header, ClientHeader::XForwardedFor);
        assert_eq!(config.proxies.trusted, Networks::default());
        assert_eq!(config.server.connection.proxy_protocol, Networks::default());
    }

    #[test]
    fn proxy_settings_are_read() {
        let config = accepted(
            "[proxies]\ntrusted = [\"10.0.0.0/8\", \"2001:db8::1\"]\nheader = \"none\"\nproxy_protocol = [\"192.0.2.1\"]",
        );
        assert_eq!(config.proxies.header, ClientHeader::Nothing);
        assert!(
            lists(&config.proxies.trusted, "10.1.2.3")
                && lists(&config.proxies.trusted, "2001:db8::1")
        );
        assert!(!lists(&config.proxies.trusted, "192.0.2.1"));
        assert!(lists(&config.server.connection.proxy_protocol, "192.0.2.1"));
        // A port that only a load balancer can reach.
        accepted("proxies.proxy_protocol = [\"10.0.0.0/8\", \"::/0\"]");
    }

    #[test]
    fn lists_in_the_environment_are_separated_by_commas() {
        let of = |text: &str| {
            with_variable("SCOREGATE_PROXIES_TRUSTED", text)
                .proxies
                .trusted
        };
        let two = of("10.0.0.0/8, 2001:db8::1");
        assert!(lists(&two, "10.1.2.3") && lists(&two, "2001:db8::1"));
        assert_eq!(
            (of(""), of(" ")),
            (Networks::default(), Networks::default())
        );
    }
}
