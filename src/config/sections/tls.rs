//! Reads `[tls.NAME]`, one table per certificate, and rejects plain HTTP on non-loopback addresses unless it is allowed.

use std::net::SocketAddr;
use std::path::PathBuf;

use toml::Value;

use crate::server::{CertificateFiles, Certificates};
use scoregate_base::clock::Wall;

use crate::config::config_reader::ConfigReader;
use crate::config::file::ConfigValues;
use crate::config::{ConfigProblem, ConfigProblems};

pub(in crate::config) fn certificates(reading: &mut ConfigReader<'_>) -> Vec<CertificateFiles> {
    reading
        .names_in("tls")
        .into_iter()
        .map(|name| certificate(reading, name))
        .collect()
}

fn certificate(reading: &mut ConfigReader<'_>, name: &str) -> CertificateFiles {
    let certificate = file(
        reading,
        &format!("tls.{name}.certificate"),
        "its certificate, in PEM",
    );
    let key = file(
        reading,
        &format!("tls.{name}.key"),
        "its private key, in PEM",
    );
    CertificateFiles {
        name: name.to_owned(),
        certificate,
        key,
    }
}

fn file(reading: &mut ConfigReader<'_>, path: &str, what: &str) -> PathBuf {
    let file = reading
        .maybe(path)
        .and_then(Value::as_str)
        .filter(|file| !file.is_empty());
    if file.is_none() {
        reading.reject(path, format!("write the path of {what}, in double quotes"));
    }
    PathBuf::from(file.unwrap_or_default())
}

/// Rejects plain HTTP on a non-loopback address, unless `server.plain_http` allows it.
pub(in crate::config) fn no_plain_http_by_accident(
    reading: &mut ConfigReader<'_>,
    listen: SocketAddr,
    has_tls: bool,
) {
    let may = reading.flag("server.plain_http");
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

/// The configured certificate files; problems with other settings are ignored.
pub fn certificate_files(written: &ConfigValues) -> Vec<CertificateFiles> {
    let files = certificates(&mut ConfigReader::of(written));
    let is_named = |file: &CertificateFiles| {
        !file.certificate.as_os_str().is_empty() && !file.key.as_os_str().is_empty()
    };
    files.into_iter().filter(is_named).collect()
}

/// Reads certificates, or reports all problems with them.
pub fn read_certificates(
    files: &[CertificateFiles],
    now: Wall,
) -> Result<Option<Certificates>, ConfigProblems> {
    Certificates::load(files, now).map_err(|bad| {
        let problem = |bad: crate::server::BadCertificate| ConfigProblem {
            path: format!("tls.{}", bad.name),
            found: Some(bad.file.display().to_string()),
            remedy: bad.reason,
        };
        ConfigProblems(bad.into_iter().map(problem).collect())
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{read_text, resolve};

    fn problems(text: &str) -> Vec<String> {
        let text = format!("upstream = \"built-in\"\n{text}");
        let found = resolve(&read_text(&text).unwrap())
            .err()
            .map(|problems| problems.0)
            .unwrap_or_default();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn plain_http_on_a_network_must_be_allowed_explicitly() {
        assert_eq!(problems("listen = \"[::1]:80\""), Vec::<String>::new());
        for open in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            let found = problems(&format!("listen = \"{open}\""));
            assert!(
                found.len() == 1 && found[0].contains(open) && found[0].contains("plain_http"),
                "{found:?}"
            );
            assert!(problems(&format!("listen = \"{open}\"\nserver.plain_http = true")).is_empty());
            let tls = "[tls.default]\ncertificate = \"a.pem\"\nkey = \"a.key\"";
            assert!(problems(&format!("listen = \"{open}\"\n{tls}")).is_empty());
        }
    }

    #[test]
    fn a_certificate_needs_both_files_and_nothing_else() {
        let found =
            problems("[tls.a]\ncertificate = \"a.pem\"\n[tls.b]\nkey = 7\n[tls.c]\nkeys = \"x\"");
        for (path, words) in [
            ("tls.a.key", "private key"),
            ("tls.b.certificate", "certificate"),
            ("tls.b.key", "found 7"),
            ("tls.c.keys", "no such setting"),
            ("tls.c.key:", "private key"),
            ("tls.c.certificate", "certificate"),
        ] {
            let hit = found
                .iter()
                .any(|line| line.starts_with(path) && line.contains(words));
            assert!(hit, "{path} {words} in {found:#?}");
        }
        assert_eq!(found.len(), 6, "{found:#?}");
    }
}
