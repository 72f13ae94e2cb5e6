//! Tests how runs are read from the tools' golden files, and from damaged and hostile files.
//!
//! `tests/reference/tool_logs.py` writes the golden files. With `SCOREGATE_WRITE=1`, this test writes the runs next to
//! them. Compare these runs with the logs by hand.

mod damaged_lm_eval;
mod golden;
mod golden_files;
mod hostile;
mod made_up;
mod records;
