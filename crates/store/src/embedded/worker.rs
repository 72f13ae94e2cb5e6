//! A thread that owns a connection, with its queue.
//!
//! The writer's loop provides durability: queued commands share one transaction and one sync, and replies are sent only
//! after the sync. The work is passed as a closure.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread::JoinHandle,
};

use rusqlite::{Connection, config::DbConfig};
use tokio::sync::{mpsc, oneshot};

use super::{fault::OpenFile, file::empty_log};
use crate::{
    StoreError, StoreResult,
    statements::{Done, FileConnection},
};

/// Maximum number of commands per transaction. The limit bounds how long the first command waits.
pub const MAX_GROUP: usize = 256;
/// Maximum queue length. Further callers wait until there is space.
const QUEUE: usize = 1024;

/// The receiving side of a queue.
pub type WorkQueue = mpsc::Receiver<Box<dyn Job>>;

/// The handle to a thread.
#[derive(Debug)]
pub struct StoreWorker {
    file: OpenFile,
    // Both are `Some` until the handle is dropped.
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// A queued command. It is answered only after it has been run and it is certain whether its effects are durable.
pub trait Job: Send {
    /// Runs the command. `Err` rolls back its effects.
    fn run(&mut self, connection: &FileConnection) -> Result<(), String>;

    /// Whether the command deleted personal data.
    fn has_erased(&self) -> bool;

    /// Sends the reply. `lost` is the reason if the effects of the whole group did not become durable.
    fn answer(self: Box<Self>, lost: Option<&str>);
}

struct WorkerCommand<T, W> {
    doing: &'static str,
    erases: bool,
    file: OpenFile,
    work: Option<W>,
    outcome: Option<StoreResult<T>>,
    reply: oneshot::Sender<StoreResult<T>>,
}

impl StoreWorker {
    /// Starts a thread that runs `serve` on its queue until the worker is dropped.
    pub(super) fn start(
        name: &str,
        file: &OpenFile,
        connection: Connection,
        serve: impl FnOnce(&FileConnection, WorkQueue) + Send + 'static,
    ) -> StoreResult<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || serve(&FileConnection::new(connection), jobs))
            .map_err(|error| unavailable("start a thread", &error))?;
        Ok(Self {
            file: file.clone(),
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Runs `work` on the thread and waits for its result. Queued work is done even if the caller stops waiting. After
    /// work that deletes personal data, the writer empties the write-ahead log before it replies.
    pub async fn run<T, W>(&self, erases: bool, doing: &'static str, work: W) -> StoreResult<T>
    where
        T: Send + 'static,
        W: FnOnce(&FileConnection) -> Done<T> + Send + 'static,
    {
        let stopped = || unavailable(doing, &"its worker thread has stopped");
        let (reply, answer) = oneshot::channel();
        let command = WorkerCommand {
            doing,
            erases,
            file: self.file.clone(),
            work: Some(work),
            outcome: None,
            reply,
        };
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(Box::new(command)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for StoreWorker {
    fn drop(&mut self) {
        drop(self.queue.take());
        // The thread ends when the queue is empty. If it panicked, the callers have already received an error.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl<T, W> Job for WorkerCommand<T, W>
where
    T: Send,
    W: FnOnce(&FileConnection) -> Done<T> + Send,
{
    fn run(&mut self, connection: &FileConnection) -> Result<(), String> {
        let Some(work) = self.work.take() else {
            return Ok(());
        };
        let outcome = work(connection)
            .map_err(|fault| fault.into_error_while_serving(self.doing, &self.file));
        let result = outcome.as_ref().map(drop).map_err(ToString::to_string);
        self.outcome = Some(outcome);
        result
    }

    fn has_erased(&self) -> bool {
        self.erases && matches!(self.outcome, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, lost: Option<&str>) {
        let outcome = match (lost, self.outcome) {
            (None, Some(outcome)) => outcome,
            (Some(reason), _) => Err(unavailable(self.doing, &reason)),
            (None, None) => Err(unavailable(self.doing, &"it was not started")),
        };
        // The caller may have stopped waiting.
        drop(self.reply.send(outcome));
    }
}

/// The reader's loop.
pub fn one_by_one(connection: &FileConnection, mut queue: WorkQueue) {
    while let Some(mut job) = queue.blocking_recv() {
        // A failed read returns its error in its reply. Nothing else is affected.
        drop(job.run(connection));
        job.answer(None);
    }
}

/// The writer's loop: runs the queued commands in one transaction, and replies after the sync.
pub fn in_groups(
    shared: &FileConnection,
    file: &OpenFile,
    mut queue: WorkQueue,
    commits: &AtomicU64,
) {
    let connection = &*shared.lock();
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        let outcome = commit_group(shared, file, &mut queue, &mut group);
        if outcome.is_ok() {
            commits.fetch_add(1, Ordering::Relaxed);
            if group.iter().any(|job| job.has_erased()) {
                empty_log(connection);
            }
        } else {
            // Commands that arrived in the meantime fail too. They would only wait for the same disk or lock again.
            while group.len() < MAX_GROUP
                && let Ok(job) = queue.try_recv()
            {
                group.push(job);
            }
            recover(connection);
        }
        let lost = outcome.err();
        for job in group {
            job.answer(lost.as_deref());
        }
    }
    // Closing would checkpoint the log into the file and remove the log by name. The file with that name may belong to another store now.
    if file.missing_or_replaced().is_some() {
        drop(connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
    }
}

fn commit_group(
    shared: &FileConnection,
    file: &OpenFile,
    queue: &mut WorkQueue,
    group: &mut Vec<Box<dyn Job>>,
) -> Result<(), String> {
    let connection = &*shared.lock();
    in_place(file)?;
    execute(connection, "BEGIN IMMEDIATE")?;
    let mut done = 0;
    while let Some(job) = group.get_mut(done) {
        run_alone(shared, job.as_mut())?;
        done += 1;
        if group.len() < MAX_GROUP
            && let Ok(next) = queue.try_recv()
        {
            group.push(next);
        }
    }
    in_place(file).inspect_err(|_| roll_back(connection))?;
    let committed = execute(connection, "COMMIT");
    if committed.is_err() {
        roll_back(connection);
        drop(overwrite(connection));
    }
    // A write is acknowledged only if the file is still in place under its name.
    committed.and_then(|()| in_place(file))
}

fn in_place(file: &OpenFile) -> Result<(), String> {
    match file.missing_or_replaced() {
        None => Ok(()),
        Some(reason) => Err(format!(
            "{reason}; move the same file back, or stop the server and restore a backup"
        )),
    }
}

/// Replaces a failed transaction in the log with an empty one. A commit that could not be synced may be complete in the
/// log. The next start would apply it although its caller got an error.
fn overwrite(connection: &Connection) -> rusqlite::Result<()> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", format)
}

/// Runs one command so that its failure does not affect other commands. Fails if the whole transaction was rolled back.
fn run_alone(shared: &FileConnection, job: &mut dyn Job) -> Result<(), String> {
    let connection = &*shared.lock();
    execute(connection, "SAVEPOINT command")?;
    if let Err(reason) = job.run(shared) {
        // A full disk aborts the whole transaction, including the effects of the other commands.
        if connection.is_autocommit() {
            return Err(reason);
        }
        execute(connection, "ROLLBACK TO command")?;
    }
    execute(connection, "RELEASE command")
}

/// Prepares the connection for the next group. If an error occurs here, the next BEGIN fails too and reports it.
fn recover(connection: &Connection) {
    roll_back(connection);
    // On a full disk the log cannot grow, but a checkpoint frees space in it.
    drop(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        drop(execute(connection, "ROLLBACK"));
    }
}

fn execute(connection: &Connection, statement: &str) -> Result<(), String> {
    let mut prepared = connection
        .prepare_cached(statement)
        .map_err(|error| error.to_string())?;
    prepared
        .execute([])
        .map(drop)
        .map_err(|error| error.to_string())
}

pub fn unavailable(doing: &'static str, reason: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable {
        doing,
        reason: reason.to_string(),
    }
}
