//! The remaining allowance of a limit, read in process and without a request, so that reading is free; and how a test
//! waits for effects after a response: by a metric, never by time.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use scoregate::keys::Digest;
use scoregate::limits::LimitRule;
use scoregate::store::OwnLimits;
use tempfile::TempDir;

use crate::backend::{Act, Backend, Received};
use crate::client::{Connection, RequestBuilder, Response};
use crate::world::{Customer, World};

/// The remaining allowance of an application's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    pub minute: u32,
    pub day: u32,
    /// Tokens of the guard: the sum of the application's and those of the address 127.0.0.1.
    pub guard: u32,
}

impl Remaining {
    /// Usage between two readings.
    pub fn spent(self, after: Self) -> (u32, u32, u32) {
        (self.minute - after.minute, self.day - after.day, self.guard - after.guard)
    }
}

/// Limits that tests of other features never reach.
pub fn wide() -> OwnLimits {
    own(100_000, 1_000_000)
}

/// An application's own limits.
pub fn own(minute: u32, day: u32) -> OwnLimits {
    OwnLimits { minute: Some(minute), day: Some(day) }
}

impl World {
    /// The remaining allowance of a customer.
    pub fn left(&self, customer: &Customer) -> Remaining {
        let account = self.running.gateway().key_directory.find(&Digest::of(&customer.key)).unwrap().account;
        let (limits, now) = (account.terms().limits, self.clock.now());
        let left = |rule| account.limit_status(rule, &limits, now).remaining;
        let guard = left(LimitRule::Guard) + self.guard_of(Ipv4Addr::LOCALHOST.into());
        Remaining { minute: left(LimitRule::Minute), day: left(LimitRule::Day), guard }
    }

    /// The remaining allowance of an address's guard.
    pub fn guard_of(&self, address: IpAddr) -> u32 {
        self.running.gateway().guard.limit_status(address, self.clock.now()).remaining
    }

    /// A free customer with wide limits.
    pub async fn free(&self) -> Customer {
        self.customer_with("free", wide()).await
    }

    /// A paid customer with wide limits.
    pub async fn paid(&self) -> Customer {
        self.customer_with("pro", wide()).await
    }

    /// A paid customer with a hundred units leased in advance, so that a hundred concurrent requests wait for no
    /// lease. Leases double with usage: it has used 210 units on the index.
    pub async fn busy(&self) -> Customer {
        self.busy_with("/api/v1/index").await
    }

    /// `busy` with another target.
    pub async fn busy_with(&self, target: &str) -> Customer {
        let customer = self.paid().await;
        let account = self.running.gateway().key_directory.find(&Digest::of(&customer.key)).unwrap().account;
        let mut connection = Connection::open(self.address()).await;
        for _ in 0..210 {
            let response = connection.send(self.get(target).key(&customer.key)).await;
            assert_eq!(response.status, 200);
            while account.is_leasing() {
                tokio::task::yield_now().await;
            }
        }
        customer
    }

    /// Sends a customer's GET.
    pub async fn get_as(&self, customer: &Customer, target: &str) -> Response {
        self.get(target).key(&customer.key).send().await
    }

    /// Waits until a series of metrics has at least this value.
    pub async fn reaches(&self, series: &str, value: u32) {
        while self.counted(series).await < value {
            tokio::task::yield_now().await;
        }
    }

    /// Connections that ended for this reason.
    pub async fn ended(&self, how: &str) -> u32 {
        self.counted(&format!("scoregate_connections_total{{reason=\"{how}\"}}")).await
    }

    /// Connections accepted so far, including closed ones.
    pub async fn connections_seen(&self) -> u64 {
        let scrape = self.scrape().await;
        let values = scrape.lines().filter(|line| line.starts_with("scoregate_connections"));
        values.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    }

    /// Waits until this many upstream requests have ended and their documents are stored.
    pub async fn fetched(&self, calls: u32) {
        self.reaches("scoregate_upstream_duration_seconds_count", calls).await;
    }

    /// Waits until no fetch is in progress or about to start.
    pub async fn settled(&self) {
        self.wait_for_fetches(0).await;
        while self.running.gateway().engine.refresher.is_active() {
            tokio::task::yield_now().await;
        }
        self.wait_for_fetches(0).await;
    }

    /// Waits until this many fetches are in progress.
    pub async fn wait_for_fetches(&self, fetches: u32) {
        while self.fetches_in_progress().await != fetches {
            tokio::task::yield_now().await;
        }
    }

    /// Number of fetches in progress.
    pub async fn fetches_in_progress(&self) -> u32 {
        self.running.gateway().engine.sweep();
        self.counted("scoregate_fetches_in_progress").await
    }

    /// Documents served with this outcome.
    pub async fn served(&self, outcome: &str) -> u32 {
        self.counted(&format!("scoregate_documents_served_total{{outcome=\"{outcome}\"}}")).await
    }

    /// Requests refused with this code.
    pub async fn refused(&self, code: &str) -> u32 {
        self.counted(&format!("scoregate_refusals_total{{code=\"{code}\"}}")).await
    }

    /// A gateway on a prepared data directory.
    pub async fn on(
        directory: TempDir,
        settings: &str,
        script: impl Fn(&Received) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self::with_backend(settings, Backend::start(script).await, Arc::new(directory)).await
    }
}

impl RequestBuilder {
    /// Sends it on a new connection from this client address.
    pub async fn send_from(self, address: IpAddr) -> Response {
        let mut connection = Connection::open_from(address, self.address()).await;
        connection.send(self).await
    }

    /// Sends it and returns the connection without reading the response.
    pub async fn begin(self) -> Connection {
        let mut connection = Connection::open(self.address()).await;
        connection.write(&self.bytes()).await;
        connection
    }
}
