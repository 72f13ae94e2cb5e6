//! Checks of the texts and limits of an application, and of messages of the status page.

use crate::store::{OwnLimits, check_website};

use super::RegistrarError;

/// Maximum length of a name, a contact or a note, in characters.
pub(super) const MAX_TEXT: usize = 200;

/// Maximum length of a message, in characters.
pub(super) const MAX_MESSAGE: usize = 4_000;

pub(super) fn check_text(what: &'static str, text: Option<&String>) -> Result<(), RegistrarError> {
    let is_printable = |text: &String| {
        let length = text.chars().take(MAX_TEXT + 1).count();
        (1..=MAX_TEXT).contains(&length) && !text.chars().any(is_misleading) && !text.trim().is_empty()
    };
    if text.is_none_or(is_printable) { Ok(()) } else { Err(RegistrarError::BadText(what)) }
}

pub(super) fn check_url(url: Option<&str>) -> Result<(), RegistrarError> {
    Ok(url.map_or(Ok(()), check_website)?)
}

/// Checks a message, which may have several lines.
pub(super) fn check_message(message: &str) -> Result<(), RegistrarError> {
    let is_short = message.chars().take(MAX_MESSAGE + 1).count() <= MAX_MESSAGE;
    let is_printable = !message.split('\n').any(|line| line.chars().any(is_misleading));
    let is_fit = is_short && is_printable && !message.trim().is_empty();
    if is_fit { Ok(()) } else { Err(RegistrarError::BadMessage) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_printable_lines_and_a_maximum_length() {
        let longest = "\u{e9}".repeat(MAX_MESSAGE);
        for fit in ["a", "One.\n\nTwo.", &longest] {
            assert!(check_message(fit).is_ok(), "{fit:?}");
        }
        let too_long = format!("{longest}a");
        for unfit in
            ["", " \n ", &too_long, "a\tb", "a\rb", "a\u{0}", "a\u{202E}b", "a\u{2066}b", "a\u{200B}b"]
        {
            assert!(matches!(check_message(unfit), Err(RegistrarError::BadMessage)), "{unfit:?}");
        }
    }
}
