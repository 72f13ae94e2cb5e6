//! A line of a page.

/// A line and its emphasis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrameLine {
    pub(super) text: String,
    pub(super) emphasis: LineEmphasis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEmphasis {
    Plain,
    Header,
    Alarm,
}

impl FrameLine {
    pub(super) fn plain(text: String) -> Self {
        Self {
            text,
            emphasis: LineEmphasis::Plain,
        }
    }

    pub(super) fn header(text: String) -> Self {
        Self {
            text,
            emphasis: LineEmphasis::Header,
        }
    }

    pub(super) fn alarm(text: &str) -> Self {
        Self {
            text: format!("! {text}"),
            emphasis: LineEmphasis::Alarm,
        }
    }
}
