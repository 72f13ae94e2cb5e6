//! Reads `[tls.NAME]`, one table per certificate. Rejects plain HTTP on non-loopback addresses unless it is allowed.

use std::{net::SocketAddr, path::PathBuf};

use toml::Value;

use crate::server::{CertificateFiles, Certificates};
use scoregate_base::clock::Wall;

use crate::config::{
    ConfigProblem, ConfigProblems, config_reader::ConfigReader, file::ConfigValues,
    table_reader::TableReader,
};

pub(in crate::config) fn certificates(reading: &mut ConfigReader<'_>) -> Vec<CertificateFiles> {
    reading
        .names_in("tls")
        .into_iter()
        .map(|name| certificate(reading, name))
        .collect()
}

fn certificate(reading: &mut ConfigReader<'_>, name: &str) -> CertificateFiles {
    let mut table = TableReader::at(reading, format!("tls.{name}"));
    CertificateFiles {
        name: name.to_owned(),
        certificate: file(&mut table, "certificate", "its certificate, in PEM"),
        key: file(&mut table, "key", "its private key, in PEM"),
    }
}

fn file(table: &mut TableReader<'_, '_>, setting: &str, what: &str) -> PathBuf {
    let remedy = format!("write the path of {what}, in double quotes");
    table
        .needed(setting, remedy, |value| {
            value.as_str().filter(|file| !file.is_empty())
        })
        .map(PathBuf::from)
        .unwrap_or_default()
}

/// Rejects plain HTTP on a non-loopback address unless `server.plain_http` allows it.
pub(in crate::config) fn no_plain_http_by_accident(
    reading: &mut ConfigReader<'_>,
    listen: SocketAddr,
    has_tls: bool,
) {
    let may = reading.get::<bool>("server.plain_http");
    if listen.ip().is_loopback() || has_tls || may {
        return;
    }
    let found = Value::String(listen.to_string());
    reading.problem(
        "listen",
        Some(&found),
        "API keys would be sent unencrypted: write [tls.default] with a certificate and its key, or \
         server.plain_http = true if a proxy on a private network terminates TLS",
    );
}

/// The configured certificate files. Problems with other settings are ignored.
pub fn certificate_files(written: &ConfigValues) -> Vec<CertificateFiles> {
    let files = certificates(&mut ConfigReader::of(written));
    files
        .into_iter()
        .filter(|file| !file.certificate.as_os_str().is_empty() && !file.key.as_os_str().is_empty())
        .collect()
}

/// Reads certificates, or reports all problems with them.
pub fn read_certificates(
    files: &[CertificateFiles],
    now: Wall,
) -> Result<Option<Certificates>, ConfigProblems> {
    Certificates::load(files, now).map_err(|bad| {
        ConfigProblems(
            bad.into_iter()
                .map(|bad| ConfigProblem {
                    path: format!("tls.{}", bad.name),
                    found: Some(bad.file.display().to_string()),
                    remedy: bad.reason,
                })
                .collect(),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::config::tests::accepted;

    #[test]
    fn plain_http_is_accepted_on_loopback_and_where_it_is_allowed() {
        accepted("listen = \"[::1]:80\"");
        for open in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            accepted(&format!("listen = \"{open}\"\nserver.plain_http = true"));
            accepted(&format!(
                "listen = \"{open}\"\n[tls.default]\ncertificate = \"a.pem\"\nkey = \"a.key\""
            ));
        }
    }
}
