//! `scoregate check`: reports all errors in a configuration.

use std::path::Path;

use crate::{
    config::{
        Config, ConfigProblem, ConfigProblems, certificate_files, check_database_files,
        open_mail_transport, read_backend_tls, read_certificates, read_environment, read_file,
        read_public_keys, read_secrets, resolve, sample,
    },
    leaks::PublishedKeys,
    mail::{MailConfig, MailDelivery},
};
use scoregate_base::{clock::Clock, plans::Tier};

use super::{
    command_error::{CommandError, CommandOutcome, input_is_fine},
    printer,
    serve::environment,
};

pub fn run(config: Option<&Path>, print_sample: bool) -> CommandOutcome {
    if print_sample {
        return Ok(printer::data(&sample())?);
    }
    let path = config
        .ok_or_else(|| CommandError::Input("set the configuration file with --config".into()))?;
    let mut values = read_file(path);
    // `serve` uses the environment too.
    values.overlay(read_environment(environment()));
    read_secrets(&mut values);
    let now = Clock::system().now().wall;
    // All checks run, so that a problem of one kind does not hide a problem of another kind.
    let mut found = match resolve(&values) {
        Ok(config) => {
            for warning in config.tiers.iter().flat_map(Tier::warnings) {
                printer::message(&format!("warning: {warning}"));
            }
            problems_of_files(&config)
        }
        Err(problems) => problems.0,
    };
    if let Err(problems) = read_certificates(&certificate_files(&values), now) {
        found.extend(problems.0);
    }
    for problem in &found {
        printer::message(&problem.to_string());
    }
    input_is_fine(found.is_empty())?;
    printer::message(&format!("{}: ok", path.display()));
    Ok(())
}

/// Problems with the files that a configuration names.
fn problems_of_files(config: &Config) -> Vec<ConfigProblem> {
    let clock = Clock::system();
    let backend = config.upstream.tls();
    let leaks = config.leaks.as_ref();
    let checked = [
        check_database_files(config.database.as_ref()).err(),
        backend.and_then(|tls| read_backend_tls(tls, &clock).err()),
        config
            .mail
            .as_ref()
            .and_then(|mail| check_mail(mail, &clock)),
        leaks.and_then(|leaks| read_public_keys(&leaks.signers, &PublishedKeys::default()).err()),
    ];
    checked
        .into_iter()
        .flatten()
        .flat_map(|found| found.0)
        .collect()
}

fn check_mail(mail: &MailConfig, clock: &Clock) -> Option<ConfigProblems> {
    match &mail.delivery {
        MailDelivery::Smtp(_) => open_mail_transport(mail, clock).err(),
        // Only a server creates the directory, when it starts.
        MailDelivery::Directory { path, .. } => {
            printer::message(&format!(
                "mail is written to {} and not sent, for testing",
                path.display()
            ));
            None
        }
    }
}
