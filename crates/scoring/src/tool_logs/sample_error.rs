//! Why a sample failed, derived from the exception that Inspect AI logged.
//!
//! A timeout or an unusable response counts against the model, so an exception counts as one of them only if a solver's
//! request to a model raised it. All other exceptions, including those in a scorer or a grading model, are failures of
//! the harness, which are not counted.

use serde::Deserialize;

use crate::RunFailure;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LoggedException {
    message: String,
    traceback: String,
}

/// Parts of exception names and messages, in lower case. The first match decides.
const KINDS: [(RunFailure, &[&str]); 4] = [
    (
        RunFailure::Throttled,
        &[
            "ratelimit",
            "rate limit",
            "toomanyrequests",
            "too many requests",
            "throttling",
            "resourceexhausted",
            "code: 429",
            "429 ",
        ],
    ),
    (
        RunFailure::Unreachable,
        &[
            "connecttimeout",
            "connecterror",
            "connectionerror",
            "connection error",
            "connectionreset",
            "connectionrefused",
            "networkerror",
            "readerror",
            "writeerror",
            "remoteprotocolerror",
            "serverdisconnected",
            "gaierror",
            "internalservererror",
            "serviceunavailable",
            "overloaded",
            "code: 500",
            "code: 502",
            "code: 503",
            "code: 504",
            "code: 529",
            "500 internal",
            "502 bad",
            "503 service",
            "504 gateway",
        ],
    ),
    (
        RunFailure::Timeout,
        &[
            "readtimeout",
            "apitimeouterror",
            "timeouterror",
            "deadlineexceeded",
        ],
    ),
    (
        RunFailure::Unusable,
        &["jsondecodeerror", "responsevalidationerror"],
    ),
];

/// Parts of stack frames of downloads that a provider's client makes for its own use, such as a tokenizer download.
const DOWNLOADS: [&str; 3] = ["tokeniz", "tiktoken", "file_download"];

impl LoggedException {
    /// The reason for the failure.
    pub fn failure(&self) -> RunFailure {
        if !self.is_of_a_request() {
            return RunFailure::Harness;
        }
        // The last line names the exception. The message of some providers' exceptions does not.
        let last = self
            .traceback
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let text = format!("{} {last}", self.message).to_lowercase();
        let kind = KINDS
            .iter()
            .find(|(_, parts)| parts.iter().any(|part| text.contains(part)));
        kind.map_or(RunFailure::Harness, |(failure, _)| *failure)
    }

    /// Whether a request to a model, made by a solver, raised the exception.
    fn is_of_a_request(&self) -> bool {
        let is_download = self
            .traceback
            .lines()
            .filter(|line| line.trim_start().starts_with("File "))
            .any(|line| {
                // Directories of a project or an environment are ignored.
                let line = line.to_lowercase().replace('\\', "/");
                let two = line
                    .rmatch_indices('/')
                    .nth(1)
                    .and_then(|(at, _)| line.get(at..));
                let package = line.rsplit_once("-packages/").map(|(_, package)| package);
                let module = package.or(two).unwrap_or(&line);
                DOWNLOADS.iter().any(|part| module.contains(part))
            });
        !is_download
            && self.has_frame("inspect_ai/model/")
            && (self.has_frame("inspect_ai/solver/") || self.has_frame("inspect_ai/agent/"))
    }

    fn has_frame(&self, of: &str) -> bool {
        let separators = [of.to_owned(), of.replace('/', "\\")];
        separators
            .iter()
            .any(|frame| self.traceback.contains(frame.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(message: &str, last: &str, frames: &str) -> RunFailure {
        LoggedException {
            message: message.into(),
            traceback: format!("{frames}\n{last}\n\n"),
        }
        .failure()
    }

    #[test]
    fn exceptions_of_requests_become_reasons_and_all_others_are_failures_of_the_harness() {
        let request =
            "File \"/v/inspect_ai/solver/_plan.py\"\nFile \"/v/inspect_ai/model/_model.py\"";
        let windows = "File \"C:\\v\\inspect_ai\\agent\\_react.py\"\nFile \"C:\\v\\inspect_ai\\model\\_model.py\"";
        let rows = [
            (
                "Request timed out.",
                "openai.APITimeoutError: Request timed out.",
                RunFailure::Timeout,
            ),
            ("TimeoutError()", "TimeoutError", RunFailure::Timeout),
            (
                "Error code: 429 - {'error'}",
                "openai.RateLimitError: Error code: 429",
                RunFailure::Throttled,
            ),
            (
                "Error code: 529 - {}",
                "anthropic.APIStatusError: x",
                RunFailure::Unreachable,
            ),
            (
                "ConnectTimeout('')",
                "httpx.ConnectTimeout",
                RunFailure::Unreachable,
            ),
            (
                "Connection error.",
                "openai.APIConnectionError: Connection error.",
                RunFailure::Unreachable,
            ),
            ("x", "json.decoder.JSONDecodeError: x", RunFailure::Unusable),
            (
                "KeyError('answer')",
                "KeyError: 'answer'",
                RunFailure::Harness,
            ),
            (
                "Error code: 400 - {}",
                "openai.BadRequestError: x",
                RunFailure::Harness,
            ),
        ];
        for (message, last, expected) in rows {
            assert_eq!(failure(message, last, request), expected, "{message}");
            assert_eq!(failure(message, last, windows), expected, "{message}");
            let download = format!("{request}\n  File \"/v/tiktoken/load.py\"");
            assert_eq!(
                failure(message, last, &download),
                RunFailure::Harness,
                "{message}"
            );
            // The directory that contains the environment is not a package, even if it is named like one.
            let project = request.replace("/v/", "/tokenizers/.venv/site-packages/");
            assert_eq!(failure(message, last, &project), expected, "{message}");
            // The exception is raised in a tool, a scorer or a grading model.
            for frames in [
                "",
                "File \"/v/inspect_ai/solver/_plan.py\"",
                "File \"/v/inspect_ai/model/_model.py\"",
            ] {
                assert_eq!(
                    failure(message, last, frames),
                    RunFailure::Harness,
                    "{message} {frames}"
                );
            }
        }
    }
}
