//! The tables in SQLite's dialect. Digests are blobs, which take half the size of text in the table and the index.
//! `hex(digest)` prints one, and `digest = x'…'` finds one. `datetime(created_at / 1000, 'unixepoch')` prints a time.

use crate::statements::schema::ONLY_DATABASE;

/// SQL terms in the steps, and the equivalent terms for this engine.
const TERMS: [(&str, &str); 8] = [
    ("{schema}.", ""),
    (" COLLATE \"C\"", ""),
    (" GENERATED ALWAYS AS IDENTITY", ""),
    (" bigint PRIMARY KEY", " integer NOT NULL PRIMARY KEY"),
    (" bigint", " integer"),
    (" boolean", " integer"),
    (" bytea", " blob"),
    (" date ", " text "),
];

/// The statements of a step. If the key of a table is a single number, it becomes the row id.
pub fn statements(step: &str) -> String {
    let (both, _) = step.split_once(ONLY_DATABASE).unwrap_or((step, ""));
    let mut statements = String::new();
    let mut end = "";
    for line in both.lines() {
        let own = TERMS
            .iter()
            .fold(line.to_owned(), |line, (term, own)| line.replace(term, own));
        if line.starts_with("CREATE TABLE") {
            end = ") STRICT, WITHOUT ROWID;";
        } else if own.contains(" integer NOT NULL PRIMARY KEY") {
            end = ") STRICT;";
        }
        statements.push_str(if line.starts_with(')') { end } else { &own });
        statements.push('\n');
    }
    statements
}
