//! Classification of SQLite errors.

use rusqlite::ErrorCode;

/// Whether an error shows damage to a database.
pub fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    code.is_some_and(|code| matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether an error shows that the file has tables of another format or is damaged, given that the statement is valid
/// for the tables of this format.
pub fn is_unusable(error: &rusqlite::Error) -> bool {
    let is_input = matches!(error, rusqlite::Error::SqlInputError { .. });
    is_input || error.sqlite_error_code() == Some(ErrorCode::Unknown) || is_damage(error)
}
