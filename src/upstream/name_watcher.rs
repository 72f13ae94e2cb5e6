//! Follows the names of a backend's addresses, and closes connections to a host to which a name no longer resolves.

use std::collections::BTreeSet;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use scoregate_base::clock::Clock;

use super::http::HttpUpstream;

/// Interval between lookups of the names of addresses.
const RESOLVE_EVERY: Duration = Duration::from_secs(30);

/// The result of a lookup.
type ResolvedHosts = Pin<Box<dyn Future<Output = std::io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the hosts of a name and port.
type ResolveName = Arc<dyn Fn(String, u16) -> ResolvedHosts + Send + Sync>;

/// Follows the names of a backend's addresses until shutdown.
pub struct NameWatcher {
    addresses: Vec<Arc<HttpUpstream>>,
    resolve: ResolveName,
    clock: Clock,
}

impl NameWatcher {
    /// Watches the names of these addresses.
    pub fn new(addresses: Vec<Arc<HttpUpstream>>, clock: Clock) -> Self {
        Self {
            addresses,
            resolve: Arc::new(|name, port| Box::pin(lookup(name, port))),
            clock,
        }
    }

    /// Runs until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        let names = self.addresses.iter();
        let resolve = join_all(names.map(|address| self.follow_name(address)));
        stop.run_until_cancelled(resolve).await;
    }

    /// Closes the idle connections of an address when they may lead to a host to which its name no longer resolves.
    async fn follow_name(&self, address: &HttpUpstream) {
        let Some((name, port)) = address.name_and_port() else {
            return;
        };
        let mut hosts = BTreeSet::new();
        loop {
            match (self.resolve)(name.clone(), port).await {
                Ok(found) if !found.is_empty() => {
                    let found: BTreeSet<IpAddr> = found.into_iter().collect();
                    if !hosts.is_subset(&found) {
                        tracing::info!(name, hosts = ?found, "backend name resolves to other hosts");
                        address.close_idle();
                    }
                    hosts = found;
                }
                // Hosts that cannot be looked up are kept.
                Ok(_) => {}
                Err(error) => tracing::debug!(name, %error, "backend name cannot be resolved"),
            }
            self.clock.sleep(RESOLVE_EVERY).await;
        }
    }
}

async fn lookup(name: String, port: u16) -> std::io::Result<Vec<IpAddr>> {
    Ok(tokio::net::lookup_host((name, port))
        .await?
        .map(|host| host.ip())
        .collect())
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::watch;
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::upstream::http::tests::upstream_at;
    use crate::upstream::{Upstream as _, UpstreamRequest};
    use scoregate_base::clock::Wall;
    use scoregate_base::routes::DocumentKey;

    /// A server that sends 404 and keeps connections open. Reports the number of connections.
    async fn server() -> (u16, watch::Receiver<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, accepted) = watch::channel(0);
        let tasks = TaskTracker::new();
        tasks.clone().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                sender.send_modify(|accepted| *accepted += 1);
                tasks.spawn(async move {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        let response = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
                        stream.write_all(response).await.unwrap();
                    }
                });
            }
        });
        (port, accepted)
    }

    #[tokio::test]
    async fn connections_to_a_host_that_is_gone_are_closed() {
        let (port, accepted) = server().await;
        let (clock, manual) = Clock::manual(Wall::from_seconds(1_000_000));
        let address = Arc::new(upstream_at(&format!("http://localhost:{port}"), &clock));
        let mut watcher = NameWatcher::new(vec![Arc::clone(&address)], clock.clone());
        let hosts = Arc::new(Mutex::new(vec![IpAddr::from([127, 0, 0, 1])]));
        let (lookups, mut looked_up) = watch::channel(0);
        let shown = Arc::clone(&hosts);
        let lookups = Arc::new(lookups);
        watcher.resolve = Arc::new(move |name, _| {
            let hosts = shown.lock().clone();
            let lookups = Arc::clone(&lookups);
            Box::pin(async move {
                assert_eq!(name, "localhost");
                lookups.send_modify(|number| *number += 1);
                Ok(hosts)
            })
        });
        let stop = CancellationToken::new();
        let watching = Arc::new(watcher);
        let run = TaskTracker::new().spawn({
            let watching = Arc::clone(&watching);
            let stop = stop.clone();
            async move { watching.run(stop).await }
        });
        let fetch = async || {
            let key = DocumentKey::list_of_models();
            drop(
                address
                    .fetch(UpstreamRequest {
                        key: &key,
                        known: None,
                        trace: None,
                    })
                    .await,
            );
        };
        let mut lookup = async |number: usize| {
            while *looked_up.borrow_and_update() < number {
                manual.advance(RESOLVE_EVERY);
                tokio::task::yield_now().await;
            }
        };
        fetch().await;
        lookup(3).await;
        fetch().await;
        assert_eq!(*accepted.borrow(), 1, "the connection is used again");
        hosts.lock().push(IpAddr::from([127, 0, 0, 2]));
        lookup(6).await;
        fetch().await;
        assert_eq!(*accepted.borrow(), 1, "a host was added");
        hosts.lock().remove(0);
        lookup(9).await;
        fetch().await;
        assert_eq!(*accepted.borrow(), 2, "the first host is gone");
        stop.cancel();
        run.await.unwrap();
    }
}
