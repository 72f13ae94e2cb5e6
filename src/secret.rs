//! A value that never prints itself and leaves memory when it is dropped.
//!
//! For keys, tokens and credentials. Not for digests: those are meant to be stored.

use std::fmt;

use zeroize::Zeroizing;

/// Text that only [`Secret::expose`] shows.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text in.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text itself. Whoever calls this answers for where it goes.
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
