//! `scoregate check`: reports all errors of a configuration.

use std::path::Path;

use crate::config::{
    certificate_files, check_database_files, open_mail_transport, read_backend_tls,
    read_certificates, read_environment, read_file, read_public_keys, read_secrets, resolve,
    sample,
};
use crate::leaks::PublishedKeys;
use crate::mail::MailDelivery;
use scoregate_base::clock::Clock;

use super::command_error::{CommandError, CommandOutcome};
use super::exit::Exit;
use super::printer;
use super::serve::environment;

pub(super) fn run(config: Option<&Path>, print_sample: bool) -> CommandOutcome {
    if print_sample {
        return Ok(printer::data(&sample()));
    }
    let no_file = || CommandError::Input("set the configuration file with --config".into());
    let path = config.ok_or_else(no_file)?;
    let mut values = read_file(path);
    // `serve` uses the environment too.
    values.overlay(read_environment(environment()));
    let clock = Clock::system();
    let now = clock.now().wall;
    // All checks run, so that a problem of one kind does not hide one of another.
    read_secrets(&mut values);
    let resolved = resolve(&values);
    let database = resolved
        .as_ref()
        .ok()
        .and_then(|config| check_database_files(config).err());
    let backend = resolved
        .as_ref()
        .ok()
        .and_then(|config| config.upstream.tls());
    let backend = backend.and_then(|tls| read_backend_tls(tls, &clock).err());
    let mail = resolved
        .as_ref()
        .ok()
        .and_then(|config| config.mail.as_ref());
    let mail = mail.and_then(|mail| match &mail.delivery {
        MailDelivery::Smtp(_) => open_mail_transport(mail, &clock).err(),
        // Only a start creates it.
        MailDelivery::Directory { path, .. } => {
            printer::message(&format!(
                "mail is written to {} and not sent, for testing",
                path.display()
            ));
            None
        }
    });
    let leaks = resolved
        .as_ref()
        .ok()
        .and_then(|config| config.leaks.as_ref());
    let leaks =
        leaks.and_then(|leaks| read_public_keys(&leaks.signers, &PublishedKeys::default()).err());
    let public = read_certificates(&certificate_files(&values), now).err();
    let found = [resolved.err(), database, backend, mail, leaks, public];
    let problems: Vec<_> = found
        .into_iter()
        .flatten()
        .flat_map(|found| found.0)
        .collect();
    for problem in &problems {
        printer::message(&problem.to_string());
    }
    if !problems.is_empty() {
        return Ok(Exit::Input);
    }
    printer::message(&format!("{}: ok", path.display()));
    Ok(Exit::Done)
}
