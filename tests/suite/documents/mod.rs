//! Stored documents: freshness, refreshes, waiters, purges, the disk mirror.

mod caching;
mod disk_mirror;
mod freshness;
mod older_data;
mod purge;
mod races;
mod refresh_simulation;
mod refreshing;
mod waiters;
