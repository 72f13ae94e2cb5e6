//! The terminal that a live view is shown on: its own page, gone without a trace at the end.
//!
//! Not for: what is shown (`frame`).

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::cli::printer;

use super::frame::{FrameLine, LineEmphasis};

/// Where the size of a terminal cannot be found out.
const USUAL_SIZE: (usize, usize) = (100, 30);

/// A page of its own, no cursor, and keys that are heard at once. All of it ends when this is dropped.
pub(super) struct Screen {
    before: Option<Termios>,
}

impl Screen {
    /// Opens it; none if standard output is no terminal.
    pub(super) fn open() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        // Where keys come from something else than a terminal, they come as they do.
        let before = tcgetattr(io::stdin()).ok().filter(|before| {
            let mut keys = before.clone();
            // Ctrl-C goes on being a signal.
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(io::stdin(), OptionalActions::Now, &keys).is_ok()
        });
        printer::write("\x1b[?1049h\x1b[?25l").ok().map(|()| Self { before })
    }

    /// Columns and rows.
    pub(super) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or(USUAL_SIZE, |size| (usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Shows lines in place of those before.
    pub(super) fn show(lines: &[FrameLine]) -> io::Result<()> {
        let (columns, _) = Self::size();
        let mut page = String::from("\x1b[H");
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                page.push_str("\r\n");
            }
            let text: String = line.text.chars().take(columns).collect();
            let style = match line.weight {
                LineEmphasis::Plain => "",
                LineEmphasis::Head => "\x1b[7m",
                LineEmphasis::Alarm => "\x1b[1;31m",
            };
            // The rest of a line is what was there before.
            write!(page, "{style}{text}\x1b[0m\x1b[K").map_err(io::Error::other)?;
        }
        page.push_str("\x1b[J");
        printer::write(&page)
    }

    /// The keys that are pressed, from now on.
    pub(super) fn keys() -> mpsc::Receiver<u8> {
        let (pressed, keys) = mpsc::channel(16);
        // It ends with the process: nothing wakes a reader of a terminal.
        std::thread::spawn(move || {
            for byte in io::stdin().lock().bytes().map_while(Result::ok) {
                if pressed.blocking_send(byte).is_err() {
                    return;
                }
            }
        });
        keys
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let left = printer::write("\x1b[?25h\x1b[?1049l");
        let keys = self.before.as_ref().map(|before| tcsetattr(io::stdin(), OptionalActions::Now, before));
        if left.is_err() || keys.is_some_and(|put_back| put_back.is_err()) {
            printer::say("the terminal could not be put back as it was: `reset` does that");
        }
    }
}
