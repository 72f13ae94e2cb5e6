//! A real Prometheus that scrapes the side ports of a test, with the rules of the repository, queried over its HTTP
//! API. Its data directory belongs to the test, its port is free, and it stops when dropped.

use std::{net::SocketAddr, process::Command, time::Duration};

use form_urlencoded::byte_serialize;
use scoregate_base::clock::Clock;
use serde_json::Value as Json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::dashboards::in_tree;
use crate::program::Program;

/// Prometheus scrapes once a second, so polling more often finds nothing new.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The test fails if a wait takes longer than this.
const POLLS: u32 = 200;

pub struct Prometheus {
    program: Program,
    address: SocketAddr,
    _directory: TempDir,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes these side ports every second.
    pub fn start(sides: &[SocketAddr]) -> Self {
        let directory = TempDir::new().unwrap();
        let rules = in_tree("deploy/prometheus/rules");
        let targets: Vec<String> = sides.iter().map(|side| format!("\"{side}\"")).collect();
        let settings = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [\"{}/*.yml\"]\n\
             scrape_configs: [{{job_name: scoregate, static_configs: [{{targets: [{}]}}]}}]\n",
            rules.display(),
            targets.join(", ")
        );
        let file = directory.path().join("prometheus.yml");
        std::fs::write(&file, settings).unwrap();
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!(
            "--storage.tsdb.path={}",
            directory.path().join("data").display()
        ));
        command.arg("--web.listen-address=127.0.0.1:0");
        let program = Program::spawn(command);
        // The address is logged twice: the configured one and the actual one.
        let address = loop {
            let line = program.logs("address=127.0.0.1:");
            let port = line
                .split("address=127.0.0.1:")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap();
            if port != "0" {
                break SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()));
            }
        };
        program.logs("Server is ready");
        Self {
            program,
            address,
            _directory: directory,
        }
    }

    /// The current values of the series of a query.
    pub async fn query(&self, query: &str) -> Result<Vec<f64>, String> {
        let response = self
            .get(&format!(
                "/api/v1/query?query={}",
                byte_serialize(query.as_bytes()).collect::<String>()
            ))
            .await;
        if response["status"] != "success" {
            return Err(response["error"].to_string());
        }
        let value = |pair: &Json| pair[1].as_str().unwrap().parse::<f64>().unwrap();
        let found = &response["data"];
        if found["resultType"] == "scalar" {
            return Ok(vec![value(&found["result"])]);
        }
        Ok(found["result"]
            .as_array()
            .unwrap()
            .iter()
            .map(|series| value(&series["value"]))
            .collect())
    }

    /// Waits until a query returns at least this value.
    pub async fn reaches(&self, query: &str, value: f64) {
        let clock = Clock::system();
        for _ in 0..POLLS {
            if self
                .query(query)
                .await
                .unwrap()
                .first()
                .is_some_and(|found| *found >= value)
            {
                return;
            }
            clock.sleep(POLL_INTERVAL).await;
        }
        panic!(
            "{query} does not reach {value}: {:?}",
            self.query(query).await
        );
    }

    /// The loaded rules: name, query and health of each.
    pub async fn rules(&self) -> Vec<Json> {
        let response = self.get("/api/v1/rules").await;
        let groups = response["data"]["groups"].as_array().unwrap();
        groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone())
            .collect()
    }

    /// The values of a label of a metric.
    pub async fn values(&self, metric: &str, label: &str) -> usize {
        let response = self
            .get(&format!(
                "/api/v1/label/{label}/values?match[]={}",
                byte_serialize(metric.as_bytes()).collect::<String>()
            ))
            .await;
        response["data"].as_array().unwrap().len()
    }

    pub fn stop(self) {
        assert_eq!(self.program.stop().code, Some(0));
    }

    async fn get(&self, target: &str) -> Json {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // Prometheus sends no chunks to an HTTP/1.0 client.
        let head = format!("GET {target} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await.unwrap();
        let response = String::from_utf8(response).unwrap();
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{target}: {response}"))
    }
}
