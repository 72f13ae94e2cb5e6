//! Golden files of the tools as runs, and damaged and hostile files.
//!
//! The golden files are written by `tests/reference/tool_logs.py`. The runs beside them are written by this test with
//! `SCOREGATE_WRITE=1`; compare them with the logs by hand.

mod damaged_lm_eval;
mod golden;
mod golden_files;
mod hostile;
mod made_up;
mod records;
