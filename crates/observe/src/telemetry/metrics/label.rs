//! Labels of metrics. A label is a closed set of values with indexes.

/// A closed set of label values.
pub trait MetricLabel: Copy {
    /// The label's name in [`LABELS`](super::LABELS).
    const NAME: &'static str;
    /// The index in the list of values.
    fn index(self) -> usize;
}

/// A label whose values do not depend on the configuration.
pub trait FixedLabel: MetricLabel {
    /// All values, ordered by index.
    fn words() -> Vec<String>;
}

/// Declares an enum as a label, with the value of each variant. The second form implements a label for an existing
/// enum, given the list of its variants and the function that returns a word.
#[macro_export]
macro_rules! metric_label {
    ($(#[$about:meta])* $visible:vis enum $label:ident: $name:literal {
        $($(#[$when:meta])* $variant:ident = $word:literal,)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visible enum $label {
            $($(#[$when])* $variant,)+
        }

        impl $label {
            /// Label values, in the order of the variants.
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        $crate::telemetry::metrics::metric_label!($label: $name, $label::WORDS, |word| word);
    };
    ($label:ty: $name:literal, $all:expr, $word:expr) => {
        impl $crate::telemetry::metrics::MetricLabel for $label {
            const NAME: &'static str = $name;
            fn index(self) -> usize {
                self as usize
            }
        }

        impl $crate::telemetry::metrics::FixedLabel for $label {
            fn words() -> Vec<String> {
                $all.iter().copied().map($word).map(str::to_owned).collect()
            }
        }
    };
}
pub use metric_label;
