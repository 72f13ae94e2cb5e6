//! Records of the audit trail, each written in the transaction of its change.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::statements::run;
use crate::stored::millis;
use scoregate_base::clock::Wall;

/// Adds an audit record: actor, action, application, details.
pub(super) fn add(connection: &Connection, at: Wall, words: [&str; 4]) -> Result<(), StoreFault> {
    let [who, what, application, detail] = words;
    let insert = "INSERT INTO audit (at, who, what, application, detail) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(connection, insert, params![millis(at), who, what, application, detail]).map(drop)
}
