//! An installation of a program: settings with free loopback ports, data, and two keys: one without effective limits, and
//! one whose minute is used up after one request.

use std::{fmt::Write as _, path::PathBuf, process::Command};

use tempfile::TempDir;

/// A directory with settings, scored runs, and keys.
pub struct Installation {
    program: PathBuf,
    directory: TempDir,
    pub key: String,
    pub spent: String,
}

impl Installation {
    pub fn of(program: PathBuf) -> Self {
        let directory = TempDir::new().unwrap();
        let settings = format!(
            "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\nupstream = \"built-in\"\nmcp.enabled = true\n\
             guard.per_minute = 100000000\nfreshness.probe = false\nserver.workers = 1\n\
             [tiers.load]\nminute = 1000000000\nday = 1000000000\npaid = true\n\
             [tiers.one]\nminute = 1\nday = 1000\npaid = true\n",
            directory.path().join("data").display()
        );
        std::fs::write(directory.path().join("scoregate.toml"), settings).unwrap();
        let installation = Self {
            program,
            directory,
            key: String::new(),
            spent: String::new(),
        };
        installation.import();
        let key = installation.create("load");
        let spent = installation.create("one");
        Self {
            key,
            spent,
            ..installation
        }
    }

    pub fn settings(&self) -> PathBuf {
        self.directory.path().join("scoregate.toml")
    }

    /// Imports runs of twenty models, for a list of realistic size.
    fn import(&self) {
        let now = jiff::Timestamp::now().as_second() / 3_600 * 3_600;
        let mut lines = String::new();
        let axes = [
            "correctness",
            "spec",
            "codeQuality",
            "efficiency",
            "stability",
            "refusal",
            "recovery",
        ];
        for model in 0..20 {
            for (minute, suite) in [(0, "coding"), (1, "reasoning"), (2, "tooling")] {
                let at = jiff::Timestamp::from_second(now - 3_600 + 60 * minute).unwrap();
                let score = 0.5 + 0.02 * f64::from(model);
                let scores: Vec<String> = axes
                    .iter()
                    .map(|axis| format!("\"{axis}\":{score}"))
                    .collect();
                let trial = format!(
                    "{{\"scores\":{{{}}},\"latencyMs\":900,\"cost\":0.01}}",
                    scores.join(",")
                );
                writeln!(
                    lines,
                    "{{\"id\":\"{model}-{suite}\",\"model\":{{\"id\":\"model-{model}\",\"name\":\"Model {model}\",\
                     \"provider\":\"meridian\",\"priceInput\":1.0,\"priceOutput\":4.0}},\"suite\":\"{suite}\",\
                     \"time\":\"{at}\",\"trials\":[{trial},{trial}]}}"
                )
                .unwrap();
            }
        }
        let file = self.directory.path().join("runs.jsonl");
        std::fs::write(&file, lines).unwrap();
        self.run(&["scoring", "import", file.to_str().unwrap()]);
    }

    fn create(&self, tier: &str) -> String {
        self.run(&["keys", "create", "--name", "bench", "--tier", tier])
            .trim()
            .to_owned()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let settings = self.settings();
        let done = Command::new(&self.program)
            .args(arguments)
            .arg("--config")
            .arg(settings)
            .output();
        let done = done.unwrap();
        assert!(
            done.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }
}
