//! Creates and upgrades the tables, and checks whether this program can use them. `sql::schema` has the steps.

use tokio_postgres::Row;

use crate::statements::{
    Done, Fault, RoleName, SchemaClient, SqlField,
    schema::{STEPS, comments},
};

/// Privileges of a runtime role. It can neither change the table definitions nor alter the audit trail.
const GRANTS: &str = "
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.applications, {schema}.keys, {schema}.ledger_days, {schema}.ledger_nodes,
    {schema}.ledger_windows, {schema}.minute_pools, {schema}.nodes,
    {schema}.documents, {schema}.document_contents, {schema}.backend_refreshes, {schema}.request_nodes,
    {schema}.request_days, {schema}.usage_terms, {schema}.status_minutes, {schema}.owners, {schema}.owned_applications, {schema}.sign_in_links,
    {schema}.owner_sessions, {schema}.mail_queue, {schema}.closed_applications, {schema}.grace_shares,
    {schema}.notices, {schema}.evidence_hours, {schema}.evidence_days, {schema}.evidence_keys,
    {schema}.limits_until, {schema}.idempotency_keys, {schema}.owner_webhooks TO {role};
GRANT SELECT, UPDATE ON {schema}.calendar, {schema}.site TO {role};
GRANT SELECT, INSERT ON {schema}.audit, {schema}.status_messages TO {role}";

/// The restore marks, if these are the tables that gateways used: neither a dump nor a backup that lacks later commits
/// was restored.
pub const IS_OWN: &str = "
SELECT restored_at, seen_at FROM {schema}.calendar WHERE own_oid = tableoid AND coalesce(cluster = {cluster}, true)";

/// The error for restored tables.
pub const RESTORED: &str = "the database was restored from a backup, and lacks later grants and revocations: stop all gateways \
     and run `scoregate store restore`";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaFormat {
    /// Number of applied steps.
    pub(crate) applied: i32,
    /// The minimum number of schema steps that a program must include to use the tables.
    pub(crate) compatible_from: i32,
}

/// An operation on the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablesWork {
    /// Creates the tables, unless they exist.
    Create,
    /// Applies missing steps to existing tables.
    Upgrade,
}

/// The result of an operation on the tables, with format numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TablesChange {
    /// The tables were created.
    Created(i32),
    /// Steps were applied.
    Upgraded {
        /// The previous format.
        from: i32,
        /// The new format.
        to: i32,
    },
    /// Nothing was changed.
    Unchanged(i32),
    /// Nothing was changed, because there are no tables to upgrade.
    Missing,
}

/// Creates or upgrades the tables in a transaction, and grants `role` its privileges. Several programs may do this
/// concurrently. Upgrades lock the row of `site`. If several programs create the tables, one succeeds and the others
/// wait for it.
pub async fn change(
    client: SchemaClient<'_>,
    steps: &[&str],
    work: TablesWork,
    role: Option<&RoleName>,
) -> Done<TablesChange> {
    match attempt(client, steps, work, role).await {
        // Another program may have created the tables in the meantime.
        Err(Fault::Database(error)) if error.as_db_error().is_some() => {}
        done => return done,
    }
    client.batch_execute("ROLLBACK; BEGIN").await?;
    attempt(client, steps, work, role).await
}

async fn attempt(
    client: SchemaClient<'_>,
    steps: &[&str],
    work: TablesWork,
    role: Option<&RoleName>,
) -> Done<TablesChange> {
    let newest = i32::try_from(steps.len()).unwrap_or(i32::MAX);
    let found = format(client, " FOR UPDATE")
        .await?
        .map(|format| format.applied);
    let (missing, change) = match (work, found) {
        (TablesWork::Upgrade, None) => return Ok(TablesChange::Missing),
        (TablesWork::Create, None) => {
            client
                .batch_execute("CREATE SCHEMA IF NOT EXISTS {schema}")
                .await?;
            (0, TablesChange::Created(newest))
        }
        (TablesWork::Upgrade, Some(from)) if from < newest => {
            (from, TablesChange::Upgraded { from, to: newest })
        }
        (TablesWork::Create | TablesWork::Upgrade, Some(format)) => {
            (newest, TablesChange::Unchanged(format))
        }
    };
    let missing = steps
        .iter()
        .skip(usize::try_from(missing).unwrap_or(usize::MAX));
    for (step, format) in missing.zip(found.unwrap_or(0) + 1..) {
        let format = format!("UPDATE {{schema}}.site SET format = {format}");
        let comments = comments(step);
        client
            .batch_execute(&format!("{step};{comments}{format}"))
            .await?;
    }
    if let Some(role) = role {
        client
            .batch_execute(&GRANTS.replace("{role}", &role.to_string()))
            .await?;
    }
    Ok(change)
}

/// Why this program cannot use the tables; `None` if it can.
pub async fn problem(client: SchemaClient<'_>) -> Done<Option<String>> {
    if let Some(problem) = problem_of_format(client).await? {
        return Ok(Some(problem));
    }
    let own = client.query_opt(IS_OWN, &[]).await?;
    Ok(own.is_none().then(|| RESTORED.into()))
}

/// Why this program cannot use the format of the tables; `None` if it can.
pub async fn problem_of_format(client: SchemaClient<'_>) -> Done<Option<String>> {
    Ok(SchemaFormat::problem(format(client, "").await?))
}

/// The format of the tables, if it is newer than this release.
pub async fn newer(client: SchemaClient<'_>) -> Done<Option<i32>> {
    let known = i32::try_from(STEPS.len()).unwrap_or(i32::MAX);
    Ok(format(client, "")
        .await?
        .map(|found| found.applied)
        .filter(|applied| *applied > known))
}

impl SchemaFormat {
    /// Reads the format from a row of `site`.
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            applied: row.try_get("format")?,
            compatible_from: row.try_get("compatible_from")?,
        })
    }

    /// Why tables in this format cannot be used; `None` if they can. Missing tables are a problem too.
    pub(crate) fn problem(found: Option<Self>) -> Option<String> {
        let known = i32::try_from(STEPS.len()).unwrap_or(i32::MAX);
        match found {
            None => Some("it has no tables; run `scoregate store init`".into()),
            Some(Self {
                compatible_from, ..
            }) if compatible_from > known => Some(format!(
                "its tables need a program that supports format {compatible_from}, but this release supports format {known}; start a newer release"
            )),
            Some(Self { applied, .. }) if applied < known => Some(format!(
                "its tables have format {applied}, but this release needs format {known}; run `scoregate store upgrade`"
            )),
            Some(_) => None,
        }
    }
}

async fn format(client: SchemaClient<'_>, lock: &str) -> Done<Option<SchemaFormat>> {
    let name = client.schema.statement("{schema}.site");
    if client
        .query_opt(
            "SELECT 1 WHERE to_regclass($1) IS NOT NULL",
            &[SqlField::Text(&name)],
        )
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let select = format!("SELECT format, compatible_from FROM {{schema}}.site{lock}");
    let found = client.query_opt(&select, &[]).await?;
    Ok(found.as_ref().map(SchemaFormat::of).transpose()?)
}
