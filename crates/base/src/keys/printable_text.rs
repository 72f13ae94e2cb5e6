//! Checks of texts that people enter: about applications, for the status page, and for mail.

use std::fmt;

use super::website::BadWebsite;

/// Maximum length of a name, a contact or a note, in characters.
const MAX_TEXT: usize = 200;

/// Maximum length of a message, in characters.
const MAX_MESSAGE: usize = 4_000;

/// The reason why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFlaw {
    /// The text is empty, blank or too long.
    Length,
    /// The text has a character that is invisible at its position.
    Character(char),
}

impl fmt::Display for TextFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length => Ok(()),
            Self::Character(character) => write!(f, "; remove U+{:04X}", u32::from(*character)),
        }
    }
}

/// A text is empty, too long, or has misleading characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadText {
    /// A text of one line, with its name.
    #[error("the {0} must be 1 to {MAX_TEXT} printable characters{1}")]
    Line(&'static str, TextFlaw),
    /// The URL of a website, with the name of its field.
    #[error("the {0} {1}")]
    Website(&'static str, BadWebsite),
    /// A message.
    #[error("the message must be 1 to {MAX_MESSAGE} printable characters and line breaks")]
    Message,
}

impl BadText {
    /// The name of the text.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Line(name, _) | Self::Website(name, _) => name,
            Self::Message => "message",
        }
    }
}

/// Checks an optional one-line string.
pub fn check_text(what: &'static str, text: Option<&str>) -> Result<(), BadText> {
    text.and_then(flaw_of)
        .map_or(Ok(()), |flaw| Err(BadText::Line(what, flaw)))
}

fn flaw_of(text: &str) -> Option<TextFlaw> {
    let length = text.chars().take(MAX_TEXT + 1).count();
    let is_fit = (1..=MAX_TEXT).contains(&length) && !text.trim().is_empty();
    let character = misplaced_character(text).map(TextFlaw::Character);
    character.or_else(|| (!is_fit).then_some(TextFlaw::Length))
}

/// Checks a message, which may have several lines. Returns it in the form in which it is stored.
pub fn checked_message(message: &str) -> Result<String, BadText> {
    let message = message.replace("\r\n", "\n").trim().to_owned();
    let is_short = message.chars().take(MAX_MESSAGE + 1).count() <= MAX_MESSAGE;
    let is_printable = !message
        .split('\n')
        .any(|line| line.chars().any(is_misleading));
    let is_fit = is_short && is_printable && !message.is_empty();
    if is_fit {
        Ok(message)
    } else {
        Err(BadText::Message)
    }
}

/// Whether a character can make a text look like another text: control characters, invisible characters and characters
/// that change the writing direction. Joiners and variation selectors are not included.
fn is_misleading(character: char) -> bool {
    let is_unseen = matches!(
        character,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}' | '\u{200B}'
            | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}'
            | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E00FF}' | '\u{E01F0}'..='\u{E0FFF}'
    );
    character.is_control() || is_unseen
}

/// Whether a character selects a variant of the previous character. Two names that differ only in such a character can
/// look the same.
const fn is_variation_selector(character: char) -> bool {
    matches!(
        character,
        '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}'
    )
}

/// The first character that is misleading at its position. A joiner is needed between letters of some scripts and
/// between emojis, and the selector U+FE0F is part of many emojis. Elsewhere these characters are invisible.
fn misplaced_character(text: &str) -> Option<char> {
    let mut before = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let is_fit = match character {
            '\u{200C}' | '\u{200D}' => is_letter(before) && is_letter(characters.peek().copied()),
            '\u{FE0F}' => is_letter(before) && !before.is_some_and(is_variation_selector),
            _ => !is_misleading(character) && !is_variation_selector(character),
        };
        if !is_fit {
            return Some(character);
        }
        before = Some(character);
    }
    None
}

/// Whether a neighbour can be joined: a letter of another script, or an emoji.
fn is_letter(neighbour: Option<char>) -> bool {
    neighbour.is_some_and(|character| {
        !character.is_ascii() && !is_joiner(character) && !character.is_whitespace()
    })
}

const fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200C}' | '\u{200D}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_only_visible_characters() {
        let check = |name: &str| check_text("name", Some(name)).is_ok();
        for fit in [
            "Weather site",
            "O'Brien & S\u{f6}hne",
            "\u{5929}\u{6c17}",
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{1f326} rain",
            "\u{2600}\u{fe0f} Weather",
            "\u{2764}\u{fe0f}\u{200d}\u{1f525}",
        ] {
            assert!(check(fit), "{fit:?}");
        }
        for unseen in [
            '\u{0}',
            '\n',
            '\u{7f}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            for text in [
                format!("Weather{unseen} site"),
                unseen.to_string(),
                format!("{unseen}{unseen}"),
            ] {
                let error = check_text("name", Some(&text)).unwrap_err().to_string();
                let named = format!("; remove U+{:04X}", u32::from(unseen));
                assert!(error.ends_with(&named), "{text:?}: {error}");
            }
        }
        for doubled in [
            "\u{2600}\u{fe0f}\u{fe0f}",
            "\u{2600}\u{fe0e}",
            "\u{2764}\u{200d}\u{fe0f}",
        ] {
            assert!(!check(doubled), "{doubled:?}");
        }
        let empty = check_text("name", Some("")).unwrap_err().to_string();
        assert_eq!(empty, "the name must be 1 to 200 printable characters");
    }

    #[test]
    fn a_message_has_printable_lines_and_a_maximum_length() {
        let longest = "\u{e9}".repeat(MAX_MESSAGE);
        for fit in ["a", "One.\n\nTwo.", "\u{26a0}\u{fe0f} Degraded", &longest] {
            assert_eq!(checked_message(fit).as_deref(), Ok(fit), "{fit:?}");
        }
        let too_long = format!("{longest}a");
        for unfit in [
            "",
            " \n ",
            &too_long,
            "a\tb",
            "a\rb",
            "a\u{0}",
            "a\u{202E}b",
            "a\u{2066}b",
            "a\u{200B}b",
        ] {
            assert_eq!(checked_message(unfit), Err(BadText::Message), "{unfit:?}");
        }
    }
}
