//! The thread that writes grace to `local.db`. It makes and drops all reservations in order, so a unit is spent only while its
//! reservation is in the file.
//!
//! Reservations that arrive during a write are written together.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
};

use tokio::sync::oneshot;

use scoregate_base::clock::Day;
use scoregate_store::{HeldGraceShare, LocalFile, OwedRecords, OwedUnits};

use crate::{accounts::Account, quota::grace_book::GraceBook};

/// A task for the thread.
enum GraceWork {
    /// Reserves units of the account's day.
    Reserve(Arc<Account>, oneshot::Sender<bool>),
    /// Replaces the file.
    Replace(NewContent, oneshot::Sender<io::Result<()>>),
}

/// The next content of the file.
#[derive(Debug, Default)]
pub struct NewContent {
    /// Shares for the next process.
    pub shares: Vec<HeldGraceShare>,
    /// The current day. Units of earlier days can no longer be charged.
    pub today: Day,
    /// Whether this process has stopped spending units. Only the units that it owes are then saved.
    pub is_last: bool,
}

/// Sends work to the thread. The thread ends when this is dropped or after the last content.
#[derive(Debug)]
pub struct GraceWriter(Sender<GraceWork>);

/// The state of the thread.
struct WriterState {
    node: u64,
    book: Arc<GraceBook>,
    file: Arc<LocalFile>,
    /// Whether reserved units must be in the file before they are spent.
    is_durable: bool,
    /// The content that was written last, and whether nothing has been added since.
    saved: OwedRecords,
    is_unchanged: bool,
    is_failing: bool,
}

impl GraceWriter {
    /// Starts the thread.
    pub fn start(
        file: Arc<LocalFile>,
        saved: OwedRecords,
        node: u64,
        book: &Arc<GraceBook>,
        is_durable: bool,
    ) -> io::Result<Self> {
        let (sender, work) = channel();
        let book = Arc::clone(book);
        let is_unchanged = true;
        let is_failing = false;
        let state = WriterState {
            node,
            book,
            file,
            is_durable,
            saved,
            is_unchanged,
            is_failing,
        };
        std::thread::Builder::new()
            .name("grace".into())
            .spawn(move || state.run(&work))?;
        Ok(Self(sender))
    }

    /// Durably reserves units of the account's day. Returns whether a unit may be spent.
    pub async fn reserve(&self, account: &Arc<Account>) -> bool {
        let (reply, reserved) = oneshot::channel();
        let is_sent = self
            .0
            .send(GraceWork::Reserve(Arc::clone(account), reply))
            .is_ok();
        is_sent && reserved.await.unwrap_or(false)
    }

    /// Replaces the content of the file.
    pub async fn replace(&self, content: NewContent) -> io::Result<()> {
        let (reply, replaced) = oneshot::channel();
        self.0
            .send(GraceWork::Replace(content, reply))
            .map_err(|_| stopped())?;
        replaced.await.map_err(|_| stopped())?
    }
}

fn stopped() -> io::Error {
    io::Error::other("its thread has stopped")
}

impl WriterState {
    fn run(mut self, work: &Receiver<GraceWork>) {
        let mut reserving = Vec::new();
        while let Ok(first) = work.recv() {
            for work in std::iter::once(first).chain(work.try_iter()) {
                match work {
                    GraceWork::Reserve(account, reply) => reserving.push((account, reply)),
                    GraceWork::Replace(content, reply) => {
                        // Reservations that arrived earlier are made first. Otherwise they would get no reply after the
                        // last content, which ends the thread.
                        self.reserve(std::mem::take(&mut reserving));
                        // The caller may have stopped waiting.
                        drop(reply.send(self.replace(&content)));
                        // Nothing replaces the last content, so the thread ends.
                        if content.is_last {
                            return;
                        }
                    }
                }
            }
            self.reserve(std::mem::take(&mut reserving));
        }
    }

    fn reserve(&mut self, accounts: Vec<(Arc<Account>, oneshot::Sender<bool>)>) {
        let mut entries = Vec::new();
        let mut waiting = Vec::new();
        for (account, reply) in accounts {
            let day = account.state().day();
            let quota = account.terms().limits.day;
            let part = self.book.part(&account, day.day());
            // Another request of the account may have reserved units in the meantime.
            if day.has_reserved() || !day.may_owe(quota, part) {
                answer(reply, day.has_reserved());
                continue;
            }
            let node = self.node;
            let application = account.id;
            let (granted, owed) = day.to_reserve(part);
            entries.push(OwedUnits {
                node,
                application,
                day: day.day(),
                granted,
                owed,
                quota,
            });
            waiting.push((account, reply));
        }
        // All reservations share one write, because each write waits for the disk.
        let is_written = entries.is_empty() || self.add(&entries);
        for ((account, reply), entry) in waiting.into_iter().zip(entries) {
            // Units may be spent only after the write, so that the next start charges them if the process crashes.
            if is_written {
                self.book.list(&account);
                account.state().reserve(entry.day, entry.granted);
            }
            answer(reply, is_written);
        }
    }

    /// Adds entries to the file. Returns whether they are durable.
    fn add(&mut self, entries: &[OwedUnits]) -> bool {
        if !self.is_durable {
            return true;
        }
        self.is_unchanged = false;
        let added = self.file.add_owed(entries);
        self.report(&added);
        added.is_ok()
    }

    fn replace(&mut self, content: &NewContent) -> io::Result<()> {
        self.book.drop_settled(content.today);
        let records = self.records(content);
        if records == self.saved && self.is_unchanged {
            return Ok(());
        }
        let written = self.write(records);
        // The caller logs a failure of the last write.
        if !content.is_last {
            self.report(&written);
        }
        written
    }

    /// The content with the units of this process: the reserved units, or the owed units if it spends no more units.
    fn records(&self, content: &NewContent) -> OwedRecords {
        let listed = if self.is_durable || content.is_last {
            self.book.listed()
        } else {
            Vec::new()
        };
        let own = listed.iter().map(|account| {
            let day = account.state().day();
            let total = if content.is_last {
                day.charge().known.granted
            } else {
                day.reserved()
            };
            let owed = total.saturating_sub(day.totals().granted);
            let application = account.id;
            let quota = account.terms().limits.day;
            OwedUnits {
                node: self.node,
                application,
                day: day.day(),
                granted: total,
                owed,
                quota,
            }
        });
        let own = own.filter(|one| one.day >= content.today);
        let owed = self
            .book
            .carried(content.today)
            .into_iter()
            .chain(own)
            .collect();
        OwedRecords {
            shares: content.shares.clone(),
            owed,
        }
    }

    fn write(&mut self, records: OwedRecords) -> io::Result<()> {
        // If the write fails, the content of the file is unknown, so the next content is written even if it is the
        // same.
        self.is_unchanged = false;
        self.file.replace_grace(&records)?;
        (self.saved, self.is_unchanged) = (records, true);
        Ok(())
    }

    /// Logs the first of several consecutive failures.
    fn report(&mut self, done: &io::Result<()>) {
        let was_failing = std::mem::replace(&mut self.is_failing, done.is_err());
        if let Err(error) = done
            && !was_failing
        {
            tracing::error!(%error, "cannot write grace to local.db; grace is disabled until a write succeeds");
        }
    }
}

fn answer(reply: oneshot::Sender<bool>, is_reserved: bool) {
    if reply.send(is_reserved).is_err() {
        tracing::trace!("a request that waited for grace has ended");
    }
}
