//! Stops and restarts of a test server.

use std::process::Command;

use super::postgres::{PostgresServer, launch, run};

impl PostgresServer {
    /// Stops the server gracefully. Its data are kept.
    pub fn stop(&mut self) {
        run(Command::new("sh")
            .arg("-c")
            .arg(format!("kill -INT {}", self.child.id())));
        self.child.wait().expect("it ends");
    }

    /// Starts the server again at the same address.
    pub fn restart(&mut self, settings: &[&str]) {
        self.child = launch(self.directory.path(), settings, &self.environment);
    }
}
