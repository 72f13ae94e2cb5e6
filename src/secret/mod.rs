//! A value that is never printed and is erased from memory when dropped.
//!
//! For keys, tokens and credentials. Digests are meant to be stored and need no such protection.

mod file;
mod setting;

use std::fmt;

use zeroize::Zeroizing;

pub use file::{BadSecretFile, open_without_waiting, read_secret_file};
pub use setting::SecretSetting;

/// Text that only [`Secret::expose`] returns.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps the text.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself. The caller is responsible for its use.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        assert_eq!(format!("{:?}", Some(Secret::new("sg_live_x".into()))), "Some([secret])");
    }
}
