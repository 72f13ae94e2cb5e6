//! The commands of `scoregate store` for a database.

use std::{io, path::Path, time::Duration};

use anyhow::Context as _;
use serde_json::{Value, json};

use scoregate_base::{
    clock::{Clock, Wall},
    plans::Tier,
};
use scoregate_store::{
    DatabaseReport, DatabaseSettings, RoleName, StoreError, StoreResult, TablesChange, TablesWork,
    TransferError,
    maintenance::{DatabaseCommand, DatabaseExport, ImportOptions},
};

use super::{
    arguments::{CLOSE_NEEDS_A_FILE, RuntimeRole, StoreCommand},
    report::{print_day, print_lost},
};
use crate::cli::{
    command_error::{CommandError, CommandOutcome, input_is_fine},
    control::{block_on, operator},
    output_file::OutputFile,
    printer,
};

/// Largest accepted difference between the clocks of the database and of this machine.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_mins(1);

pub fn run(command: &StoreCommand, settings: &DatabaseSettings, tiers: &[Tier]) -> CommandOutcome {
    let database = DatabaseCommand {
        config: settings
            .read_files()
            .map_err(|error| CommandError::Input(error.to_string()))?,
        clock: Clock::system(),
    };
    block_on(async {
        match command {
            StoreCommand::Init { grant } => change_tables(settings, database, TablesWork::Create, grant).await,
            StoreCommand::Upgrade { grant } => {
                change_tables(settings, database, TablesWork::Upgrade, grant).await
            }
            StoreCommand::Check { json } => check(settings, database, *json).await,
            StoreCommand::Export { file, force, close } => {
                export(settings, database, file, *force, *close).await
            }
            StoreCommand::Import { file } => import(settings, database, file).await,
            StoreCommand::Restore(args) if args.previous.is_none() => {
                restore(settings, database, args.file.as_deref(), &args.options(tiers)).await
            }
        StoreCommand::Backup { .. }
        | StoreCommand::VerifyBackup { .. }
        | StoreCommand::Restore(_)
        | StoreCommand::CloseFutureDays { .. } => Err(CommandError::Input(
            "this command works on a store file, but the configuration has a database (store.url). Back up \
             a database with its own tools, such as pg_dump"
                .into(),
        )),
        }
    })
}

async fn change_tables(
    settings: &DatabaseSettings,
    database: DatabaseCommand,
    work: TablesWork,
    grant: &RuntimeRole,
) -> CommandOutcome {
    let role: Option<RoleName> = grant.runtime_role.clone();
    let changed = database.change_tables(work, role.clone()).await;
    let done = match changed.with_context(|| format!("the database {}", settings.address))? {
        TablesChange::Created(format) => format!("created the tables with format {format}"),
        TablesChange::Unchanged(format) => format!("the tables already have format {format}"),
        TablesChange::Upgraded { from, to } => {
            format!("upgraded the tables from format {from} to {to}")
        }
        TablesChange::Missing => {
            let remedy = "there are no tables to upgrade; run `scoregate store init`";
            return Err(CommandError::Input(remedy.into()));
        }
    };
    printer::message(&format!("{done} in {}", settings.address));
    if let Some(role) = role {
        printer::message(&format!("granted the rights of a server to {role}"));
    }
    Ok(())
}

/// Exports to standard output or to a file. The file is durable before the database is closed.
async fn export(
    settings: &DatabaseSettings,
    database: DatabaseCommand,
    to: &Path,
    force: bool,
    closes: bool,
) -> CommandOutcome {
    let is_stdout = to == Path::new("-");
    if is_stdout && closes {
        return Err(CommandError::Input(CLOSE_NEEDS_A_FILE.into()));
    }
    let exported = if is_stdout {
        database
            .export(&mut io::stdout(), &mut || Ok(()), false)
            .await
    } else {
        let file = OutputFile::create(to, force)?;
        let mut out = file
            .writer()
            .with_context(|| format!("{} cannot be written", to.display()))?;
        let mut file = Some(file);
        let mut keep = || file.take().map_or(Ok(()), OutputFile::finish);
        database.export(&mut out, &mut keep, closes).await
    };
    let DatabaseExport { counts, closed } = transferred(settings, to, exported)?;
    printer::message(&format!("exported: {counts}"));
    if let Some(schema) = closed {
        printer::message(&format!("the tables are now in the schema {schema}"));
    }
    Ok(())
}

async fn import(
    settings: &DatabaseSettings,
    database: DatabaseCommand,
    from: &Path,
) -> CommandOutcome {
    let imported = database.import(from, &operator()).await;
    let counts = transferred(settings, from, imported)?;
    printer::message(&format!("imported: {counts}"));
    Ok(())
}

async fn restore(
    settings: &DatabaseSettings,
    database: DatabaseCommand,
    from: Option<&Path>,
    options: &ImportOptions,
) -> CommandOutcome {
    let restored = database.restore(from, options).await;
    let name = from.unwrap_or(Path::new("the database"));
    let restored = transferred(settings, name, restored)?;
    if let Some(counts) = restored.imported {
        printer::message(&format!("imported: {counts}"));
    }
    print_day(restored.day, "");
    print_lost(restored.last_change, "");
    printer::message(&format!(
        "{} is restored: gateways can use it",
        settings.address
    ));
    Ok(())
}

/// Adds the name of the file or the database to an error.
fn transferred<T>(
    settings: &DatabaseSettings,
    file: &Path,
    done: StoreResult<T>,
) -> CommandOutcome<T> {
    done.map_err(|error| {
        let StoreError::Transfer(error) = error else {
            let error = anyhow::Error::from(error);
            return error
                .context(format!("the database {}", settings.address))
                .into();
        };
        CommandError::Input(match error {
            TransferError::File(_) | TransferError::Unfit(_) => {
                format!("{}: {error}", file.display())
            }
            TransferError::Unreadable(_)
            | TransferError::InUse(_)
            | TransferError::Newer(_)
            | TransferError::LiveGateways(_)
            | TransferError::LostRevocations { .. }
            | TransferError::ClockBehind(_) => error.to_string(),
        })
    })
}

async fn check(
    settings: &DatabaseSettings,
    database: DatabaseCommand,
    as_json: bool,
) -> CommandOutcome {
    let clock = database.clock.clone();
    let inspected = database.inspect().await;
    let found = inspected.with_context(|| format!("the database {}", settings.address))?;
    print(settings, &found, clock.now().wall, as_json)
}

fn print(
    settings: &DatabaseSettings,
    report: &DatabaseReport,
    now: Wall,
    as_json: bool,
) -> CommandOutcome {
    let difference = report.clock.since(now).max(now.since(report.clock));
    let is_wrong = difference > MAX_CLOCK_DIFFERENCE;
    if as_json {
        printer::json(&as_value(settings, report, !is_wrong, difference))?;
    } else {
        printer::data(&as_text(settings, report))?;
    }
    if !report.is_synchronous {
        printer::message(
            "The database has no synchronous standby: a failover can lose the last changes and grants. Set \
             synchronous_standby_names, and leave synchronous_commit on.",
        );
    }
    if let Some(reason) = &report.hidden_timeline {
        printer::message(&format!(
            "The server does not disclose its timeline ({reason}): a former primary that accepts connections after a \
             failover is not recognized, and lacks later changes and grants. Make sure that the service prevents this."
        ));
    }
    if is_wrong {
        printer::message(&format!(
            "The clocks of the database ({}) and of this machine ({}) differ by {} s: correct them. The database's \
             clock decides when a UTC day begins.",
            report.clock.rfc3339(),
            now.rfc3339(),
            difference.as_secs()
        ));
    }
    input_is_fine(!is_wrong)
}

/// The contents of the tables. Each row has a text label, a JSON name and a value.
fn contents(report: &DatabaseReport) -> [(&'static str, &'static str, Value); 8] {
    [
        ("schema", "format", json!(report.format)),
        ("applications", "applications", json!(report.applications)),
        ("keys", "keys", json!(report.keys)),
        ("valid keys", "keys_in_force", json!(report.keys_in_force)),
        ("current day", "day", json!(report.day)),
        ("units granted", "granted", json!(report.granted)),
        ("audit records", "audit", json!(report.audit)),
        ("shared documents", "documents", json!(report.documents)),
    ]
}

fn as_text(settings: &DatabaseSettings, report: &DatabaseReport) -> String {
    let timeline = if report.hidden_timeline.is_none() {
        "checked"
    } else {
        "cannot be checked"
    };
    let replication = if report.is_synchronous {
        "synchronous"
    } else {
        "not synchronous"
    };
    let server = format!("PostgreSQL {}", report.server);
    let contents = contents(report).map(|(name, _, value)| (name, printer::cell(&value)));
    let first = [
        ("database", settings.address.to_string()),
        ("server", server),
    ];
    let last = [
        ("timeline", timeline.into()),
        ("replication", replication.into()),
    ];
    printer::fields(first.into_iter().chain(contents).chain(last))
}

fn as_value(
    settings: &DatabaseSettings,
    report: &DatabaseReport,
    is_sound: bool,
    difference: Duration,
) -> Value {
    let state = [
        ("database", json!(settings.address.to_string())),
        ("sound", json!(is_sound)),
        ("server", json!(report.server)),
        ("synchronous", json!(report.is_synchronous)),
        ("timeline_checked", json!(report.hidden_timeline.is_none())),
        ("clock_difference_seconds", json!(difference.as_secs())),
    ];
    contents(report)
        .map(|(_, name, value)| (name, value))
        .into_iter()
        .chain(state)
        .collect()
}
