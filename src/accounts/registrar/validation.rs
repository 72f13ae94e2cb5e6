//! Checks of the texts and limits of an application.

use crate::store::OwnLimits;

use super::RegistrarError;

/// Maximum length of a name, a contact or a note, in characters.
pub(super) const MAX_TEXT: usize = 200;

pub(super) fn check_text(what: &'static str, text: Option<&String>) -> Result<(), RegistrarError> {
    let is_printable = |text: &String| {
        let length = text.chars().take(MAX_TEXT + 1).count();
        (1..=MAX_TEXT).contains(&length) && !text.chars().any(is_misleading) && !text.trim().is_empty()
    };
    if text.is_none_or(is_printable) { Ok(()) } else { Err(RegistrarError::BadText(what)) }
}

/// Whether a character can make a text look like another one: control characters, invisible ones and those that
/// change the writing direction. Joiners are allowed; some scripts need them.
fn is_misleading(character: char) -> bool {
    let is_unseen = matches!(
        character,
        '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
    );
    character.is_control() || is_unseen
}

pub(super) fn check_limits(own: OwnLimits) -> Result<(), RegistrarError> {
    if [own.minute, own.day].contains(&Some(0)) { Err(RegistrarError::BadLimit) } else { Ok(()) }
}
