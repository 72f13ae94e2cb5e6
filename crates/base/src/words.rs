//! Enums with a word for each variant. The word is stored, sent, shown or configured.

#[doc(hidden)]
pub use serde;

/// Declares an enum with a word for each variant, and the name of the function that returns the word. `ALL` lists the variants in
/// the order of their declaration. In JSON, a variant is written as its word.
#[macro_export]
macro_rules! words {
    ($(#[$about:meta])* $visible:vis enum $name:ident: $word:ident {
        $($(#[$when:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visible enum $name {
            $($(#[$when])* $variant,)+
        }

        impl $name {
            /// All variants.
            $visible const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// The words of all variants.
            $visible const WORDS: [&'static str; Self::ALL.len()] = [$($text),+];

            /// The word of the variant.
            $visible const fn $word(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The variant with this word.
            $visible fn parse(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|variant| variant.$word() == word)
            }
        }

        impl $crate::words::serde::Serialize for $name {
            fn serialize<S: $crate::words::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.$word())
            }
        }

        impl<'de> $crate::words::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::words::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let word = <String as $crate::words::serde::Deserialize>::deserialize(from)?;
                Self::parse(&word).ok_or_else(|| $crate::words::serde::de::Error::unknown_variant(&word, &Self::WORDS))
            }
        }
    };
}
