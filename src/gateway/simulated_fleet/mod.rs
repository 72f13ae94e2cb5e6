//! A simulated fleet: the accounts, the quota and the admission of several gateways in one thread, on virtual time, over
//! an embedded store behind a simulated network. An observer counts what is delivered. A seed determines a run.
//!
//! `runs` has the tests. Arithmetic alone is in `limits` (schedules and models), and real databases in `tests/suite`.

mod applications;
mod faults;
mod fleet;
mod network;
mod observer;
mod planted;
mod process;
mod runs;
mod virtual_time;
