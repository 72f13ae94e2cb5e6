//! Start, shutdown and handover of the program; failures of disks, logs and clocks.

mod clock_steps;
mod combined_failures;
mod disk_faults;
mod grace_at_shutdown;
mod handover;
mod kills;
mod missing_store;
mod resources;
mod restore_drill;
mod sigterm;
mod supervisor;
mod unread_logs;
