//! CPU time of calls of a tool by agents on kept connections, as a multiple of hits of the same document.
//!
//! Each round sends one request on every connection and then reads all responses; kinds of requests take turns. Only the
//! program's own CPU time counts. `cargo bench --bench measure -- agents` is small; `SCOREGATE_FULL=1` sends enough requests for
//! reliable figures.

use std::io::Write as _;
use std::net::TcpStream;

use tempfile::TempDir;

use super::costs::{answered, backend};
use super::gateway_process::GatewayProcess;

const AGENTS: usize = 100;
/// Models in the document, so that it has about 3 kB.
const MODELS: usize = 23;

pub(crate) fn run() {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let (turns, rounds) = if is_full { (31, 40) } else { (3, 2) };
    let directory = TempDir::new().unwrap();
    let settings = format!(
        "guard.per_minute = 100000000\nfreshness.probe = false\nmcp.enabled = true\nupstream.url = \"http://{}/\"\n\
         server.max_connections_per_address = 10000\nserver.max_connections_per_application = 10000\n",
        backend(MODELS)
    );
    let program = GatewayProcess::start(directory.path(), &settings, &[]);
    let kinds = kinds(&program.key);
    let mut agents: Vec<TcpStream> = (0..AGENTS)
        .map(|_| TcpStream::connect(program.address).unwrap())
        .collect();
    let mut costs = kinds.each_ref().map(|_| Vec::new());
    for turn in 0..=turns {
        for ((_, request), costs) in kinds.iter().zip(&mut costs) {
            let before = program.cpu_seconds();
            for _ in 0..rounds {
                for agent in &mut agents {
                    agent.write_all(request).unwrap();
                }
                assert!(agents.iter_mut().all(answered), "a connection was closed");
            }
            // The first turn fetches the document.
            if turn > 0 {
                costs.push((program.cpu_seconds() - before) / (rounds * AGENTS) as f64);
            }
        }
    }
    println!(
        "CPU time of a response, {AGENTS} connections, {turns} turns of {} requests",
        rounds * AGENTS
    );
    println!("{:<52} {:>9} {:>9}", "request", "us", "to a hit");
    let medians = costs.map(|mut costs| {
        costs.sort_unstable_by(f64::total_cmp);
        costs[costs.len() / 2]
    });
    for ((name, _), cost) in kinds.iter().zip(medians) {
        println!("{name:<52} {:>9.1} {:>9.2}", cost * 1e6, cost / medians[0]);
    }
}

/// A hit, and calls of the tool that has the same document.
fn kinds(key: &str) -> [(&'static str, Vec<u8>); 3] {
    let hit =
        format!("GET /api/v1/models?period=24h HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n");
    let call = |fields: &str, meta: &str| {
        let params =
            format!("{{\"name\":\"get_models\",\"arguments\":{{\"period\":\"24h\"}}{meta}}}");
        let body = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}"
        );
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
        );
        format!("{head}{fields}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let meta = ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                \"io.modelcontextprotocol/clientInfo\":{\"name\":\"bench\",\"version\":\"1\"},\
                \"io.modelcontextprotocol/clientCapabilities\":{}}";
    let fields = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
                  Mcp-Method: tools/call\r\nMcp-Name: get_models\r\nUser-Agent: bench/1\r\n";
    [
        ("a hit", hit.into_bytes()),
        ("a call after a handshake", call("", "")),
        ("a call of 2026-07-28", call(fields, meta)),
    ]
}
