//! Reads `[store]`: the database that several gateways share.

use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use scoregate_store::{
    BadDatabaseUrl, ClientCertificateFiles, DatabaseAddress, DatabaseSettings, SchemaName,
};

use crate::config::{ConfigProblems, config_reader::ConfigReader};

const MAX_AGE: &str = "keys.max_age";
/// Minimum of `keys.max_age`. With a shorter age, requests would be refused whenever the database is briefly slow.
const MIN_MAX_AGE: Duration = Duration::from_secs(5);
const LISTEN_URL: &str = "store.listen_url";
const URL: &str = "store.url";
const NODE_NAME: &str = "store.node_name";
/// Maximum length of a gateway's name: the maximum length of a host name.
const MAX_NAME: usize = 253;
const CERTIFICATE: &str = "store.client_certificate";
const CA_FILE: &str = "store.ca_file";
const KEY: &str = "store.client_key";

/// The database settings. `None` if the store is a file in the data directory.
pub(in crate::config) fn database(reading: &mut ConfigReader<'_>) -> Option<DatabaseSettings> {
    if reading.maybe(URL).is_none() {
        if let Some(path) = reading
            .written()
            .values
            .keys()
            .find(|path| path.starts_with("store."))
        {
            reading.problem(
                path,
                None,
                "this setting needs store.url, the address of the database",
            );
        }
        return None;
    }
    let ca_file: Option<PathBuf> = reading.optional(CA_FILE);
    let may_be_plain = ca_file.is_some() || reading.get("store.plain_text");
    let listen_address = address_in(reading, LISTEN_URL, may_be_plain);
    let address = address_in(reading, URL, may_be_plain);
    let schema = schema(reading);
    let client_certificate = client_certificate(reading, ca_file.is_some());
    let password = reading.secret("store.password", 1);
    let start_timeout = reading.get("store.start_timeout");
    let timeout = reading.get("store.timeout");
    Some(DatabaseSettings {
        address: address?,
        listen_address,
        password,
        client_certificate,
        ca_file,
        schema: schema?,
        start_timeout,
        timeout,
    })
}

fn address_in(
    reading: &mut ConfigReader<'_>,
    path: &str,
    may_be_plain: bool,
) -> Option<DatabaseAddress> {
    match DatabaseAddress::parse(&reading.optional::<String>(path)?) {
        Ok(address) if may_be_plain || address.is_local() => Some(address),
        Ok(_) => {
            reading.reject(
                path,
                "the connection would not be encrypted: write store.ca_file, or store.plain_text = true on a private \
                 network",
            );
            None
        }
        Err(error) => {
            let found = reading
                .maybe(path)
                .filter(|_| error != BadDatabaseUrl::Password);
            reading.problem(path, found, error.to_string());
            None
        }
    }
}

/// The number of gateways that share the database.
pub(in crate::config) fn gateways(reading: &mut ConfigReader<'_>) -> NonZeroU32 {
    let gateways = reading.optional("store.gateways");
    gateways.unwrap_or(NonZeroU32::MIN)
}

/// The name of this gateway in the list of gateways.
pub(in crate::config) fn node_name(reading: &mut ConfigReader<'_>) -> Option<String> {
    let name: String = reading.optional(NODE_NAME)?;
    if name.chars().count() > MAX_NAME {
        reading.reject(NODE_NAME, format!("write at most {MAX_NAME} characters"));
    }
    Some(name)
}

/// Maximum age of the keys. It applies only to a database, where other gateways can change keys.
pub(in crate::config) fn keys_max_age(reading: &mut ConfigReader<'_>) -> Option<Duration> {
    let age = reading.optional(MAX_AGE)?;
    if reading.maybe(URL).is_none() {
        reading.reject(
            MAX_AGE,
            "this setting needs store.url, the address of the database",
        );
    } else if age < MIN_MAX_AGE {
        reading.reject(
            MAX_AGE,
            "write at least \"5s\": changes are read every second",
        );
    }
    Some(age)
}

fn client_certificate(
    reading: &mut ConfigReader<'_>,
    has_tls: bool,
) -> Option<ClientCertificateFiles> {
    let (certificate, key) = reading.certificate_pair(CERTIFICATE, KEY)?;
    if !has_tls {
        reading.problem(
            CERTIFICATE,
            None,
            "a client certificate needs TLS: write store.ca_file",
        );
    }
    Some(ClientCertificateFiles { certificate, key })
}

fn schema(reading: &mut ConfigReader<'_>) -> Option<SchemaName> {
    let path = "store.schema";
    let name = SchemaName::parse(&reading.optional::<String>(path)?);
    name.map_err(|error| reading.reject(path, error.to_string()))
        .ok()
}

/// Reads the TLS files for the database, or reports the first unusable file.
pub fn check_database_files(database: Option<&DatabaseSettings>) -> Result<(), ConfigProblems> {
    let Some(database) = database else {
        return Ok(());
    };
    database.read_files().map(drop).map_err(|bad| {
        let files = database.client_certificate.as_ref();
        let path = match files {
            Some(files) if bad.file == files.key => KEY,
            Some(files) if bad.file == files.certificate => CERTIFICATE,
            Some(_) | None => CA_FILE,
        };
        ConfigProblems::one(path, Some(bad.file.display().to_string()), bad.reason)
    })
}

#[cfg(test)]
mod tests {
    use crate::config::tests::accepted;

    #[test]
    fn a_database_on_another_machine_needs_tls_unless_plain_text_is_allowed() {
        assert!(accepted("").database.is_none());
        let remote = "[store]\nurl = \"postgresql://gateway@db.example/scoregate\"\n";
        for allowed in ["ca_file = \"ca.pem\"", "plain_text = true"] {
            let database = accepted(&format!("{remote}{allowed}")).database.unwrap();
            assert_eq!(
                database.address.to_string(),
                "gateway@db.example:5432/scoregate"
            );
        }
        let local = "store.url = \"postgresql://gateway@127.0.0.1/scoregate\"";
        assert!(accepted(local).database.is_some());
    }
}
