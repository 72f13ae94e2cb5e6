//! A thread that owns a connection, and the queue that leads to it.
//!
//! The writer's loop is where durability is bought: what is queued shares one transaction and one wait for the disk,
//! and nobody is answered before it is over. Not for: what the work is; it comes as a closure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use tokio::sync::{mpsc, oneshot};

use super::fault::{OpenFile, StoreFault};
use crate::store::StoreError;

/// How many commands share a transaction at most, so that the first need not wait for long.
pub(super) const MOST_IN_A_GROUP: usize = 256;
/// How many commands may wait; whoever comes then, waits to be queued.
const QUEUE: usize = 1024;

/// What a thread takes from its queue.
pub(super) type WorkQueue = mpsc::Receiver<Box<dyn Job>>;

/// The way to a thread.
#[derive(Debug)]
pub(super) struct StoreWorker {
    file: OpenFile,
    // Both are there until the drop.
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// A command on its way: done first, answered when it is known whether what it did will stay.
pub(super) trait Job: Send {
    /// Does it; an `Err` asks for what it did to be undone.
    fn run(&mut self, connection: &Connection) -> Result<(), String>;

    /// Answers whoever asked; `lost` says why nothing of the whole group was made durable.
    fn answer(self: Box<Self>, lost: Option<&str>);
}

struct WorkerCommand<T, W> {
    doing: &'static str,
    file: OpenFile,
    work: Option<W>,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl StoreWorker {
    /// Starts a thread that runs `serve` on its queue until the worker is dropped.
    pub(super) fn start(
        name: &str,
        file: &OpenFile,
        connection: Connection,
        serve: impl FnOnce(&Connection, WorkQueue) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || serve(&connection, jobs))
            .map_err(|error| unavailable("start its threads", &error))?;
        Ok(Self { file: file.clone(), queue: Some(queue), thread: Some(thread) })
    }

    /// Has the thread do some work, and waits for the outcome. Work that is queued is done even if nobody waits.
    pub(super) async fn ask<T, W>(&self, doing: &'static str, work: W) -> Result<T, StoreError>
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, StoreFault> + Send + 'static,
    {
        let stopped = || unavailable(doing, &"its thread has stopped");
        let (reply, answer) = oneshot::channel();
        let file = self.file.clone();
        let command = WorkerCommand { doing, file, work: Some(work), outcome: None, reply };
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(Box::new(command)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for StoreWorker {
    fn drop(&mut self) {
        drop(self.queue.take());
        // The thread ends by itself once the queue is empty; if it panicked, its commands were answered by that.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl<T, W> Job for WorkerCommand<T, W>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, StoreFault> + Send,
{
    fn run(&mut self, connection: &Connection) -> Result<(), String> {
        let Some(work) = self.work.take() else { return Ok(()) };
        let outcome = work(connection).map_err(|fault| fault.told_at_work(self.doing, &self.file));
        let stays = outcome.as_ref().map(drop).map_err(ToString::to_string);
        self.outcome = Some(outcome);
        stays
    }

    fn answer(self: Box<Self>, lost: Option<&str>) {
        let outcome = match (lost, self.outcome) {
            (None, Some(outcome)) => outcome,
            (Some(reason), _) => Err(unavailable(self.doing, &reason)),
            (None, None) => Err(unavailable(self.doing, &"it was never begun")),
        };
        // Whoever asked may have left; that is their right.
        drop(self.reply.send(outcome));
    }
}

/// The reader's loop.
pub(super) fn one_by_one(connection: &Connection, mut queue: WorkQueue) {
    while let Some(mut job) = queue.blocking_recv() {
        // A read that failed carries its error in its own answer; nothing else was lost with it.
        drop(job.run(connection));
        job.answer(None);
    }
}

/// The writer's loop: takes what is queued into one transaction, and answers when it is on the disk.
pub(super) fn in_groups(connection: &Connection, file: &OpenFile, mut queue: WorkQueue, commits: &AtomicU64) {
    while let Some(first) = queue.blocking_recv() {
        let mut group = vec![first];
        let outcome = commit_group(connection, file, &mut queue, &mut group);
        if outcome.is_ok() {
            commits.fetch_add(1, Ordering::Relaxed);
        } else {
            // What came while we waited for a disk or a lock would only wait for the same.
            while group.len() < MOST_IN_A_GROUP
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
    // Closing would write the log into the file and remove the log under its name, which may be another store's by now.
    if file.misplaced().is_some() {
        drop(connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
    }
}

fn commit_group(
    connection: &Connection,
    file: &OpenFile,
    queue: &mut WorkQueue,
    group: &mut Vec<Box<dyn Job>>,
) -> Result<(), String> {
    in_place(file)?;
    execute(connection, "BEGIN IMMEDIATE")?;
    let mut done = 0;
    while let Some(job) = group.get_mut(done) {
        run_alone(connection, job.as_mut())?;
        done += 1;
        if group.len() < MOST_IN_A_GROUP
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
    // Nothing is acknowledged that is not in the file under its name.
    committed.and_then(|()| in_place(file))
}

fn in_place(file: &OpenFile) -> Result<(), String> {
    match file.misplaced() {
        None => Ok(()),
        Some(reason) => Err(format!("{reason}; put the same file back, or restart the server with a backup")),
    }
}

/// Puts a transaction that changes nothing in the place of one that failed. A commit that could not be synced lies whole
/// in the log, and the next start would believe it, though whoever asked for it was told that it was not done.
fn overwrite(connection: &Connection) -> rusqlite::Result<()> {
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    connection.pragma_update(None, "user_version", format)
}

/// Runs one command so that it spoils nothing for the others; fails where the whole transaction is gone.
fn run_alone(connection: &Connection, job: &mut dyn Job) -> Result<(), String> {
    execute(connection, "SAVEPOINT command")?;
    if let Err(reason) = job.run(connection) {
        // A full disk ends the transaction as a whole, and with it what the neighbours did.
        if connection.is_autocommit() {
            return Err(reason);
        }
        execute(connection, "ROLLBACK TO command")?;
    }
    execute(connection, "RELEASE command")
}

/// Makes the connection fit for the next group. What fails here fails again at the next BEGIN, which says why.
fn recover(connection: &Connection) {
    roll_back(connection);
    // On a full disk the log cannot grow, but what is copied out of it makes room in it.
    drop(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        drop(execute(connection, "ROLLBACK"));
    }
}

fn execute(connection: &Connection, statement: &str) -> Result<(), String> {
    let mut prepared = connection.prepare_cached(statement).map_err(|error| error.to_string())?;
    prepared.execute([]).map(drop).map_err(|error| error.to_string())
}

fn unavailable(doing: &'static str, reason: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable { doing, reason: reason.to_string() }
}
