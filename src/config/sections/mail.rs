//! Reads `mail.*`: the server that accepts mail, or the directory to which mail is written, and the sender.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use toml::Value;

use crate::mail::{
    MailConfig, MailDelivery, MailTransport, SenderMailbox, SmtpLogin, SmtpServer, SmtpTls,
    UnusableTransport,
};
use scoregate_base::{address::is_loopback, clock::Clock};

use super::cors::{host_and_port, is_host, is_port};
use crate::config::{ConfigProblems, config_reader::ConfigReader};

const SERVER: &str = "mail.server";
const DIRECTORY: &str = "mail.directory";
const FROM: &str = "mail.from";
const TLS: &str = "mail.tls";
const CA_FILE: &str = "mail.ca_file";
const USERNAME: &str = "mail.username";
const PASSWORD: &str = "mail.password";
const TIMEOUT: &str = "mail.timeout";
/// The sender of mail that stays on this machine.
const TRIAL_SENDER: &str = "scoregate@localhost.localdomain";
/// Maximum timeout. An email is claimed for six times the timeout. If a gateway crashes, another gateway can send its mail only
/// after this time.
const MAX_TIMEOUT: Duration = Duration::from_mins(5);

/// Reads the mail settings. `None` if neither a server nor a directory is set.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<MailConfig> {
    if reading.maybe(DIRECTORY).is_some() {
        return mail_directory(reading);
    }
    if reading.maybe(SERVER).is_none() {
        for path in reading
            .written()
            .values
            .keys()
            .filter(|path| path.starts_with("mail."))
        {
            reading.problem(
                path,
                None,
                format!(
                    "this setting needs {SERVER}, the address of the mail server, or {DIRECTORY}"
                ),
            );
        }
        return None;
    }
    let server = smtp_server(reading);
    let from = sender(reading);
    let timeout = mail_timeout(reading);
    Some(MailConfig {
        from: from?,
        delivery: MailDelivery::Smtp(Box::new(server?)),
        timeout,
    })
}

fn mail_timeout(reading: &mut ConfigReader<'_>) -> Duration {
    let timeout = reading.get(TIMEOUT);
    if timeout > MAX_TIMEOUT {
        reading.reject(TIMEOUT, "write at most \"5m\"");
    }
    timeout
}

/// Settings for mail that is written to files and never sent, for testing on one machine.
fn mail_directory(reading: &mut ConfigReader<'_>) -> Option<MailConfig> {
    let path = reading.optional(DIRECTORY)?;
    let timeout = mail_timeout(reading);
    let others = reading
        .written()
        .values
        .keys()
        .filter(|path| path.starts_with("mail."));
    for other in others.filter(|other| ![DIRECTORY, FROM, TIMEOUT].contains(&other.as_str())) {
        reading.problem(
            other,
            None,
            format!("remove this setting or {DIRECTORY}, which writes mail to files"),
        );
    }
    let listen = reading.maybe("listen").and_then(Value::as_str);
    let listen = listen.map(str::parse::<SocketAddr>);
    if !listen.is_none_or(|listen| listen.is_ok_and(|at| at.ip().is_loopback())) {
        reading.reject(
            DIRECTORY,
            format!(
                "mail can be written to files only if `listen` is a loopback address: set {SERVER}"
            ),
        );
    }
    let from = if reading.maybe(FROM).is_some() {
        sender(reading)?
    } else {
        SenderMailbox::parse(TRIAL_SENDER)?
    };
    Some(MailConfig {
        from,
        delivery: MailDelivery::Directory {
            path,
            print: |_| {},
        },
        timeout,
    })
}

fn smtp_server(reading: &mut ConfigReader<'_>) -> Option<SmtpServer> {
    let tls = smtp_tls(reading);
    let ca_file: Option<PathBuf> = reading.optional(CA_FILE);
    let login = login(reading);
    let text: String = reading.get(SERVER);
    let (host, port) = host_and_port(&text);
    let Some(port) = port.filter(|port| is_host(host) && is_port(port)) else {
        reading.reject(
            SERVER,
            "write a host and a port, such as \"mail.example.org:587\"",
        );
        return None;
    };
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    if tls == SmtpTls::Off {
        if !is_loopback(&host) {
            reading.reject(
                TLS,
                "mail to another machine would not be encrypted: write \"starttls\" or \"implicit\"",
            );
        }
        if ca_file.is_some() {
            reading.problem(
                CA_FILE,
                None,
                format!("this setting needs TLS: remove {TLS} = \"none\""),
            );
        }
    }
    Some(SmtpServer {
        host,
        port: port.parse().ok()?,
        tls,
        ca_file,
        login,
    })
}

fn smtp_tls(reading: &mut ConfigReader<'_>) -> SmtpTls {
    match reading.get::<String>(TLS).as_str() {
        "none" => SmtpTls::Off,
        "implicit" => SmtpTls::Implicit,
        _ => SmtpTls::StartTls,
    }
}

fn login(reading: &mut ConfigReader<'_>) -> Option<SmtpLogin> {
    let username = reading.optional(USERNAME);
    match (username, reading.secret(PASSWORD, 1)) {
        (Some(username), Some(password)) => Some(SmtpLogin { username, password }),
        (None, None) => None,
        // The password file has already been read, and reported if it is unusable.
        (Some(_), None) if reading.maybe("mail.password_file").is_some() => None,
        (Some(_), None) => {
            reading.problem(
                PASSWORD,
                None,
                format!("write the password of {USERNAME}, or mail.password_file"),
            );
            None
        }
        (None, Some(_)) => {
            reading.problem(
                USERNAME,
                None,
                format!("write the user name for {PASSWORD}"),
            );
            None
        }
    }
}

fn sender(reading: &mut ConfigReader<'_>) -> Option<SenderMailbox> {
    let example = "write the sender of all mail, such as \"Example API <noreply@example.org>\"";
    if reading.maybe(FROM).is_none() {
        reading.problem(FROM, None, example);
    }
    let sender = SenderMailbox::parse(&reading.optional::<String>(FROM)?);
    if sender.is_none() {
        reading.reject(FROM, format!("{example}; the address must be in ASCII"));
    }
    sender
}

/// Opens the mail transport, or reports why it cannot be used. Does not connect.
pub fn open_mail_transport(
    config: &MailConfig,
    clock: &Clock,
) -> Result<MailTransport, ConfigProblems> {
    MailTransport::open(config, clock).map_err(|unusable| {
        let (path, found, remedy) = match unusable {
            UnusableTransport::Authorities { file, reason } => {
                (CA_FILE, Some(file.display().to_string()), reason)
            }
            UnusableTransport::Tls(_) => (SERVER, None, unusable.to_string()),
            UnusableTransport::Directory { .. } => (DIRECTORY, None, unusable.to_string()),
        };
        ConfigProblems::one(path, found, remedy)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::accepted;

    const SERVER_AND_SENDER: &str =
        "server = \"mail.example.org:587\"\nfrom = \"Example API <noreply@example.org>\"\n";

    fn mail(text: &str) -> MailConfig {
        accepted(&format!("[mail]\n{text}")).mail.unwrap()
    }

    fn server(text: &str) -> SmtpServer {
        match mail(text).delivery {
            MailDelivery::Smtp(server) => *server,
            MailDelivery::Directory { .. } => panic!("{text}"),
        }
    }

    #[test]
    fn mail_is_off_without_a_server() {
        assert!(accepted("").mail.is_none());
    }

    #[test]
    fn a_server_and_a_sender_suffice_and_tls_is_on() {
        let mail = mail(SERVER_AND_SENDER);
        assert_eq!(
            (mail.timeout, mail.from.to_string().contains("noreply@")),
            (Duration::from_secs(30), true)
        );
        let found = server(SERVER_AND_SENDER);
        assert_eq!(
            (found.host.as_str(), found.port, found.tls),
            ("mail.example.org", 587, SmtpTls::StartTls)
        );
        assert!(found.ca_file.is_none() && found.login.is_none());
        let all = format!(
            "{SERVER_AND_SENDER}tls = \"implicit\"\nca_file = \"ca.pem\"\nusername = \"u\"\npassword = \"p\""
        );
        let found = server(&all);
        assert_eq!(
            (found.tls, found.login.unwrap().password.current().expose()),
            (SmtpTls::Implicit, "p")
        );
    }

    #[test]
    fn mail_is_written_to_a_directory_with_a_sender_by_default() {
        let default = mail("directory = \"/tmp/mail\"");
        assert!(
            matches!(&default.delivery, MailDelivery::Directory { path, .. } if path.to_str() == Some("/tmp/mail"))
        );
        assert_eq!(default.from.to_string(), TRIAL_SENDER);
        let from = mail("directory = \"mail\"\nfrom = \"a@example.org\"").from;
        assert_eq!(from.to_string(), "a@example.org");
    }

    #[test]
    fn mail_without_tls_may_stay_on_this_machine() {
        let from = "from = \"a@example.org\"\ntls = \"none\"\n";
        for (local, host) in [
            ("localhost", "localhost"),
            ("127.0.0.2", "127.0.0.2"),
            ("[::1]", "::1"),
        ] {
            assert_eq!(server(&format!("{from}server = \"{local}:25\"")).host, host);
        }
    }

    #[test]
    fn the_sender_is_one_mailbox_with_an_ascii_address() {
        for sender in [
            "a@example.org",
            "demo@localhost",
            "Example API <a@example.org>",
            "\u{fc}ber <a@example.org>",
        ] {
            mail(&format!(
                "server = \"mail.example.org:587\"\nfrom = \"{sender}\""
            ));
        }
    }

    #[test]
    fn an_unusable_file_of_authorities_is_reported_with_its_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (clock, _) = Clock::manual(scoregate_base::clock::Wall::from_seconds(0));
        for path in [file.path().display().to_string(), "/nowhere/ca.pem".into()] {
            let config = mail(&format!("{SERVER_AND_SENDER}ca_file = \"{path}\""));
            let problems = open_mail_transport(&config, &clock)
                .err()
                .unwrap()
                .to_string();
            assert!(
                problems.starts_with("mail.ca_file") && problems.contains(&path),
                "{problems}"
            );
        }
    }
}
