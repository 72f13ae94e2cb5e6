//! The terminal of the live view: the alternate screen, restored at the end.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Read as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

use crate::cli::printer;

use super::frame_line::{FrameLine, LineEmphasis};

/// Used if the size of the terminal is unknown.
const DEFAULT_SIZE: (usize, usize) = (100, 30);

/// The alternate screen without a cursor and with unbuffered keys. Drop restores the terminal.
pub(super) struct Screen {
    saved: Option<Termios>,
}

impl Screen {
    /// Opens the screen; none if standard output is not a terminal.
    pub(super) fn open() -> Option<Self> {
        if !io::stdout().is_terminal() {
            return None;
        }
        // If standard input is not a terminal, its mode is left unchanged.
        let saved = tcgetattr(io::stdin()).ok().filter(|saved| {
            let mut unbuffered = saved.clone();
            // Ctrl-C still sends a signal.
            unbuffered
                .local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(io::stdin(), OptionalActions::Now, &unbuffered).is_ok()
        });
        printer::write("\x1b[?1049h\x1b[?25l")
            .ok()
            .map(|()| Self { saved })
    }

    /// The size in columns and rows.
    pub(super) fn size() -> (usize, usize) {
        let size = tcgetwinsize(io::stdout())
            .ok()
            .filter(|size| size.ws_col > 0 && size.ws_row > 0);
        size.map_or(DEFAULT_SIZE, |size| {
            (usize::from(size.ws_col), usize::from(size.ws_row))
        })
    }

    /// Replaces the content of the screen.
    pub(super) fn show(lines: &[FrameLine]) -> io::Result<()> {
        let (columns, _) = Self::size();
        let mut page = String::from("\x1b[H");
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                page.push_str("\r\n");
            }
            let text: String = line.text.chars().take(columns).collect();
            let style = match line.emphasis {
                LineEmphasis::Plain => "",
                LineEmphasis::Header => "\x1b[7m",
                LineEmphasis::Alarm => "\x1b[1;31m",
            };
            // Erases the rest of the previous line.
            write!(page, "{style}{text}\x1b[0m\x1b[K").map_err(io::Error::other)?;
        }
        page.push_str("\x1b[J");
        printer::write(&page)
    }

    /// Pressed keys, from now on.
    pub(super) fn keys() -> mpsc::Receiver<u8> {
        let (sender, keys) = mpsc::channel(16);
        // Ends with the process: a blocked read of a terminal cannot be cancelled.
        std::thread::spawn(move || {
            for byte in io::stdin().lock().bytes().map_while(Result::ok) {
                if sender.blocking_send(byte).is_err() {
                    return;
                }
            }
        });
        keys
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let screen = printer::write("\x1b[?25h\x1b[?1049l");
        let mode = self
            .saved
            .as_ref()
            .map(|saved| tcsetattr(io::stdin(), OptionalActions::Now, saved));
        if screen.is_err() || mode.is_some_and(|restored| restored.is_err()) {
            printer::message("the terminal could not be restored; run `reset`");
        }
    }
}
