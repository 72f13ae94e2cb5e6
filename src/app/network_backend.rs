//! A backend over the network: its addresses and its TLS settings. `watched_files` reloads the TLS files.

use std::sync::Arc;

use anyhow::Context as _;
use parking_lot::Mutex;

use crate::{
    config::{ConfigProblems, read_backend_tls},
    upstream::{BackendTls, BackendTlsSettings, HttpConfig, HttpUpstream},
};
use scoregate_base::clock::{Clock, Wall};

/// The addresses of the backend, and the contents of the TLS files in use.
pub struct NetworkBackend {
    pub addresses: Vec<Arc<HttpUpstream>>,
    settings: BackendTlsSettings,
    /// Locked while contents are compared and replaced, so that connections are closed once for each change.
    tls: Mutex<BackendTls>,
    clock: Clock,
}

impl NetworkBackend {
    /// Reads the TLS files. Does not connect.
    pub fn open(config: &HttpConfig, clock: &Clock) -> anyhow::Result<Self> {
        let tls = read_backend_tls(&config.tls, clock)?;
        let mut addresses = Vec::new();
        for one in config.each() {
            let base = one.base.clone();
            let address = HttpUpstream::new(one, &tls, clock.clone());
            let address = address.with_context(|| format!("backend address {base}"))?;
            addresses.push(Arc::new(address));
        }
        Ok(Self {
            addresses,
            settings: config.tls.clone(),
            tls: Mutex::new(tls),
            clock: clock.clone(),
        })
    }

    /// Whether TLS uses files.
    pub fn has_files(&self) -> bool {
        self.settings.has_files()
    }

    /// When the client certificate expires.
    pub fn expires_at(&self) -> Option<Wall> {
        self.tls.lock().client_expires_at
    }

    /// Closes idle connections to hosts that are given by name.
    pub fn close_idle(&self) {
        for address in &self.addresses {
            address.close_idle();
        }
    }

    /// Reads the TLS files.
    pub fn read_tls(&self) -> Result<BackendTls, ConfigProblems> {
        read_backend_tls(&self.settings, &self.clock)
    }

    /// Reads the TLS files and uses them. Returns whether they have changed. If so, connections that use the old
    /// contents are closed.
    pub fn renew_tls(&self) -> Result<bool, String> {
        let read = self.read_tls().map_err(|problems| problems.to_string())?;
        let mut in_use = self.tls.lock();
        let is_new = read.fingerprint != in_use.fingerprint;
        if is_new {
            for address in &self.addresses {
                address.renew_tls(&read);
            }
            *in_use = read;
        }
        Ok(is_new)
    }
}
