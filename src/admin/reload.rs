//! The command to read the settings again: `POST /v1/reload`. Whoever runs the program carries it out, and answers.
//!
//! Not for: what a reload does (`app`).

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::command::CommandProblem;
use super::paths::RELOAD;

/// What became of a reload that was taken: the paths of the settings that are other than before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Reloaded {
    /// These hold now.
    pub at_once: Vec<String>,
    /// These hold from the next start.
    pub at_next_start: Vec<String>,
}

/// A reload that was asked for: it is answered with what became of it, or with everything that is wrong.
pub type ReloadAsked = oneshot::Sender<Result<Reloaded, String>>;

/// Where reloads are asked for.
pub type Reloads = mpsc::Sender<ReloadAsked>;

/// Answers a request for this path.
pub(super) async fn answer(
    reloads: &Reloads,
    method: &Method,
    path: &str,
    who: &str,
) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::POST, RELOAD) => reload(reloads, who).await,
        _ => Err(CommandProblem::not_found()),
    }
}

/// Asks for one.
async fn reload(reloads: &Reloads, who: &str) -> Result<Value, CommandProblem> {
    let (answer, answered) = oneshot::channel();
    tracing::info!(who, "reload requested");
    let nobody = || {
        CommandProblem::bad("this program has no settings that could be read again: it was started without")
    };
    reloads.send(answer).await.map_err(|_| nobody())?;
    let outcome = answered.await.map_err(|_| nobody())?;
    outcome.map(|reloaded| json!(reloaded)).map_err(CommandProblem::bad)
}
