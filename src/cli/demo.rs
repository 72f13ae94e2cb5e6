//! `scoregate demo`: runs the gateway and the built-in backend with simulated data, and creates a key for each tier.

use std::{
    fmt::Write as _,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use tokio::sync::oneshot;

use crate::{
    app::{self, RunningServer, ShutdownReport},
    config::{Config, UpstreamConfig, resolve},
    mail::MailDelivery,
    registry::{KeyDetails, NewApplication},
};
use scoregate_base::{clock::Clock, plans::standard_tiers};
use scoregate_observe::telemetry::log;
use scoregate_store::{Description, StoredApplication};

use super::{
    command_error::CommandOutcome,
    location_args::LocationArgs,
    printer,
    serve::{StopSignals, runtime, start_log},
};

const ACTOR: &str = "demo";
/// Subdirectory of the data directory in which mail is stored.
const MAIL: &str = "mail";
const LICENSE: &str = "Synthetic demo data by scoregate: simulated, not measured. Attribution with a link to the \
    service is required wherever the data is displayed.";

pub fn run(location: &LocationArgs, seed: u64) -> CommandOutcome {
    let served = temporary_directory(location).and_then(|directory| {
        let mut values = location.values();
        values.set("upstream", "built-in");
        values.set("log.level", "warn");
        values.set("service.license", LICENSE);
        values.set("site.status_page", true);
        values.set("site.sign_up", true);
        values.set("mcp.enabled", true);
        values.set("site.applications_per_account", 3);
        values.set("mail.server", "localhost:25");
        values.set("mail.from", "demo@localhost.localdomain");
        let listen = location.listen.unwrap_or(([127, 0, 0, 1], 8080).into());
        if listen.port() != 0 {
            // With this setting, examples from the docs can be copied unchanged.
            values.set("service.base_url", format!("http://{listen}"));
        }
        if let Some(directory) = &directory {
            values.set("data_dir", directory.0.to_string_lossy().into_owned());
        }
        let mut config = resolve(&values)?;
        config.upstream = UpstreamConfig::Simulated { seed };
        write_mail_to_files(&mut config);
        start_log(&config.log)?;
        let runtime = runtime(None)?;
        runtime.block_on(serve(config))
    });
    printer::finish_serving(served.map(drop))
}

fn print_mail(text: &str) {
    log::write_line(&format!("{text}\n"));
}

/// Makes the server write mail to a subdirectory of the data directory and print it instead of sending it.
fn write_mail_to_files(config: &mut Config) {
    let directory = config.data_dir.join(MAIL);
    if let Some(mail) = &mut config.mail {
        mail.delivery = MailDelivery::Directory {
            path: directory,
            print: print_mail,
        };
    }
}

async fn serve(config: Config) -> anyhow::Result<ShutdownReport> {
    let mut signals = StopSignals::listen()?;
    let data_dir = config.data_dir.clone();
    let mut running = app::start(config, Clock::system()).await?;
    // Reload requests are refused because there is no configuration file.
    running.reloads.close();
    let printed = match summary(&running, &data_dir).await {
        Ok(text) => tokio::select! {
            printed = print(text) => {
                if printed.is_ok() && log::write_line("serving; stop with Ctrl-C") {
                    signals.wait().await;
                }
                printed
            }
            () = signals.wait() => Ok(()),
        },
        Err(error) => Err(error),
    };
    let stopped = running.stop().await;
    printed.map(|()| stopped)
}

/// Prints from a detached thread, because a blocked standard output must not delay the shutdown.
async fn print(text: String) -> anyhow::Result<()> {
    let (sender, printed) = oneshot::channel();
    std::thread::Builder::new()
        .name("printer".into())
        .spawn(move || {
            if sender.send(printer::data(&text)).is_err() {
                tracing::debug!("server stopped before the keys were printed");
            }
        })
        .context("the printer thread cannot be started")?;
    printed.await?
}

/// The printed text: the key of each tier, a curl command and the addresses.
async fn summary(running: &RunningServer, data_dir: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut pro = String::new();
    let applications = running.registrar.list(None, 10_000).await?.applications;
    for tier in standard_tiers() {
        let key = issue_key(running, &applications, &tier.name).await?;
        writeln!(text, "{} {key}", tier.name)?;
        if tier.name == "pro" {
            pro = key;
        }
    }
    let public = running.public;
    let side = running.side;
    writeln!(
        text,
        "\ncurl -H 'Authorization: Bearer {pro}' 'http://{public}/api/v1/models'"
    )?;
    writeln!(
        text,
        "\ndocs    http://{public}/docs\nsign up http://{public}/account/sign-in\nstatus  http://{public}/status\nMCP     http://{public}/mcp\nmetrics http://{side}/metrics\nstate   {}",
        data_dir.display()
    )?;
    if cfg!(debug_assertions) {
        writeln!(
            text,
            "build   development: not optimized, unsuitable for measurements"
        )?;
    }
    Ok(text)
}

/// Issues a key to the demo application in a tier. Only digests of keys are stored, so an application from an earlier
/// run gets a new key and keeps its quota.
async fn issue_key(
    running: &RunningServer,
    applications: &[StoredApplication],
    tier: &str,
) -> anyhow::Result<String> {
    let name = format!("demo-{tier}");
    let existing = applications
        .iter()
        .find(|application| application.name == name && application.tier == tier);
    let issued = if let Some(existing) = existing {
        running
            .registrar
            .rotate(ACTOR, existing.id, Duration::ZERO, KeyDetails::default())
            .await?
    } else {
        let new = NewApplication {
            name,
            tier: tier.to_owned(),
            description: Description {
                note: Some("created by `scoregate demo`".into()),
                ..Description::default()
            },
            ..NewApplication::default()
        };
        running.registrar.create(ACTOR, new).await?
    };
    Ok(issued.key.expose().to_owned())
}

/// A temporary directory that is removed on drop.
struct TemporaryDirectory(PathBuf);

/// Creates a temporary directory, unless a data directory is given.
fn temporary_directory(location: &LocationArgs) -> anyhow::Result<Option<TemporaryDirectory>> {
    if location.data_dir.is_some() {
        return Ok(None);
    }
    let number = getrandom::u64().context("the operating system returned no random bytes")?;
    let path = std::env::temp_dir().join(format!("scoregate-demo-{number:016x}"));
    let created = std::fs::DirBuilder::new().mode(0o700).create(&path);
    created.with_context(|| {
        format!(
            "the temporary directory {} cannot be created",
            path.display()
        )
    })?;
    Ok(Some(TemporaryDirectory(path)))
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "temporary directory not removed");
        }
    }
}
