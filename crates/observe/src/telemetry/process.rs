//! Process metrics: CPU time, memory, files and threads.
//!
//! They are read from `/proc` when metrics are scraped, so they exist only on Linux.

use std::fs;

use metrics::Gauge;
use rustix::{
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};

use super::memory_limit::memory_limit;

/// The only metric that the recorder cannot hold, because it is a counter with a fraction.
pub const CPU: &str = "process_cpu_seconds_total";

/// Handles of the process metrics.
#[derive(Clone)]
pub struct ProcessMetrics {
    pub resident: Gauge,
    pub open_fds: Gauge,
    pub max_fds: Gauge,
    pub threads: Gauge,
    pub memory_limit: Gauge,
    pub cores: Gauge,
}

impl ProcessMetrics {
    /// Updates the gauges.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge is a float; sizes of memory are far below 2^53"
    )]
    pub fn update(&self) {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        if let Some(kibibytes) = status_field(&status, "VmRSS:") {
            self.resident.set(f64::from(kibibytes) * 1024.0);
        }
        if let Some(threads) = status_field(&status, "Threads:") {
            self.threads.set(threads);
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One descriptor is subtracted, because reading the directory opens it.
            self.open_fds.set(open.map(|_| 1.0).sum::<f64>() - 1.0);
        }
        if let Some(limit) = memory_limit() {
            self.memory_limit.set(limit as f64);
        }
        if let Ok(cores) = std::thread::available_parallelism() {
            self.cores.set(cores.get() as f64);
        }
        // `None` means unlimited.
        let most = getrlimit(Resource::Nofile).current;
        self.max_fds.set(
            most.and_then(|most| u32::try_from(most).ok())
                .map_or(f64::INFINITY, f64::from),
        );
    }
}

fn status_field(status: &str, name: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// CPU seconds of the process, as a line of the scrape with its header lines.
pub fn cpu(meaning: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "a measure of work, not a time of day"
    )]
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = spent.tv_sec;
    let millis = spent.tv_nsec / 1_000_000;
    format!("# HELP {CPU} {meaning}\n# TYPE {CPU} counter\n{CPU} {seconds}.{millis:03}\n\n")
}
