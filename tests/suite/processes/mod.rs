//! Start, shutdown and handover of the program; disks, logs and clocks that fail it.

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
