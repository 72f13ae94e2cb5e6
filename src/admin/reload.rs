//! Reload of the settings through the side port: `POST /v1/settings/reload`. `cli::serve` and `app` perform the reload.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::command_problem::{CommandProblem, CommandResult};

/// The outcome of a successful reload: the paths of the changed settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Reloaded {
    /// Settings that took effect immediately.
    pub at_once: Vec<String>,
    /// Settings that take effect after a restart.
    pub at_next_start: Vec<String>,
}

/// Reply channel of a requested reload. An error contains all problems.
pub type ReloadRequest = oneshot::Sender<Result<Reloaded, String>>;

/// Channel for reload requests.
pub type Reloads = mpsc::Sender<ReloadRequest>;

pub async fn reload(reloads: &Reloads, actor: &str) -> CommandResult {
    let (reply, replied) = oneshot::channel();
    tracing::info!(actor, "reload requested");
    reloads.send(reply).await.map_err(|_| unsupported())?;
    let outcome = replied.await.map_err(|_| unsupported())?;
    outcome
        .map(|reloaded| json!(reloaded))
        .map_err(CommandProblem::bad)
}

fn unsupported() -> CommandProblem {
    CommandProblem::bad("this program was started without settings that can be reloaded")
}
