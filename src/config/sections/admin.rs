//! Reads `admin.*`: the token of the side port and the host names that it accepts, each without a port.

use crate::admin::AdminAccess;
use scoregate_base::secret::SecretSetting;

use super::cors::is_host_name;
use crate::config::config_reader::ConfigReader;

const PATH: &str = "admin.hosts";
/// Maximum number of host names. Each request is compared with all of them.
const MOST_HOSTS: usize = 64;

pub(in crate::config) fn token(reading: &mut ConfigReader<'_>) -> Option<SecretSetting> {
    let token = reading.secret("admin.token", AdminAccess::MIN_TOKEN_LENGTH)?;
    if let Err(error) = AdminAccess::over_tcp(Some(token.clone()), Vec::new()) {
        reading.problem("admin.token", None, error.to_string());
    }
    Some(token)
}

pub(in crate::config) fn hosts(reading: &mut ConfigReader<'_>) -> Vec<String> {
    let hosts: Vec<String> = reading.get(PATH);
    reading.at_most(PATH, hosts.len(), MOST_HOSTS, "hosts");
    for host in &hosts {
        if !is_host_name(host.strip_suffix('.').unwrap_or(host)) {
            let remedy = "write a host name without a port, such as \"scoregate-side\"";
            reading.problem(PATH, Some(&host.as_str().into()), remedy);
        }
    }
    hosts
        .into_iter()
        .map(|host| host.trim_end_matches('.').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{accepted, with_variable};

    #[test]
    fn side_port_hosts_are_names_without_ports() {
        assert_eq!(accepted("").admin_hosts, [""; 0]);
        let hosts = accepted("admin.hosts = [\"a\", \"b.example.\"]").admin_hosts;
        assert_eq!(hosts, ["a", "b.example"]);
        let hosts = with_variable("SCOREGATE_ADMIN_HOSTS", "a, b.example").admin_hosts;
        assert_eq!(hosts, ["a", "b.example"]);
    }
}
