//! The contestants besides the gateway: how each is found, started and checked, and what it cannot do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::answer::{Answer, ask};
use crate::floor::{BARE, BARE_OF_TWO, LISTENS, RAW};
use crate::job::{DAY, Keys, MINUTE};
use crate::machine::{Cores, installed};
use crate::process::{Process, free_port};

/// A running contestant.
pub(crate) struct Contestant {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The process whose CPU time and memory are measured.
    pub(crate) process: Process,
    /// Whether it refuses unknown keys.
    pub(crate) knows_keys: bool,
    /// The part of the job that it does not do.
    pub(crate) limitations: &'static str,
}

/// A server that may be installed.
struct Peer {
    name: &'static str,
    program: &'static str,
    /// A module of nginx that it needs.
    module: Option<&'static str>,
    /// Name and content of its configuration file.
    file: &'static str,
    settings: &'static str,
    /// Arguments, with placeholders such as `@DIR@`.
    arguments: &'static [&'static str],
    limitations: &'static str,
    /// Whether its configuration has been tested; otherwise the table states that it has not.
    is_proven: bool,
}

const NGINX: [&str; 4] = ["-p", "@DIR@", "-c", "@FILE@"];
const PEERS: [Peer; 5] = [
    Peer {
        name: "nginx",
        program: "nginx",
        module: None,
        file: "nginx.conf",
        settings: include_str!("configs/nginx.conf"),
        arguments: &NGINX,
        limitations: "no daily limit; does not report remaining requests",
        is_proven: true,
    },
    Peer {
        name: "nginx+Lua",
        program: "nginx",
        module: Some("ngx_http_lua_module.so"),
        file: "nginx-lua.conf",
        settings: include_str!("configs/nginx-lua.conf"),
        arguments: &NGINX,
        limitations: "counts in memory only; fixed minutes",
        is_proven: true,
    },
    Peer {
        name: "HAProxy",
        program: "haproxy",
        module: None,
        file: "haproxy.cfg",
        settings: include_str!("configs/haproxy.cfg"),
        arguments: &["-db", "-f", "@FILE@"],
        limitations: "counts in memory only; sliding day",
        is_proven: true,
    },
    Peer {
        name: "Varnish",
        program: "varnishd",
        module: None,
        file: "varnish.vcl",
        settings: include_str!("configs/varnish.vcl"),
        arguments: &[
            "-F",
            "-j",
            "none",
            "-n",
            "@DIR@/n",
            "-a",
            "@ADDRESS@",
            "-f",
            "@FILE@",
            "-s",
            "malloc,64m",
            // One thread per busy connection, none of which ends during the measurement.
            "-p",
            "thread_pools=1",
            "-p",
            "thread_pool_min=100",
            "-p",
            "thread_pool_max=100",
        ],
        limitations: "counts in memory only; the day starts with the first request",
        is_proven: true,
    },
    Peer {
        name: "Envoy",
        program: "envoy",
        module: None,
        file: "envoy.yaml",
        settings: include_str!("configs/envoy.yaml"),
        arguments: &["-c", "@FILE@", "--concurrency", "1", "--disable-hot-restart", "-l", "error"],
        limitations: "counts in memory only; reports one limit",
        is_proven: false,
    },
];

/// The two lower bounds: this program again, sending these bytes.
pub(crate) fn floor(cores: &Cores, sent: &Answer) -> Vec<Contestant> {
    let this = std::env::current_exe().unwrap();
    [("raw epoll loop", RAW), ("bare hyper", BARE)]
        .map(|(name, role)| decides_nothing(name, role, cores.one(&this), sent, 1))
        .into()
}

/// The loop, with this many copies of the response.
pub(crate) fn loop_over(copies: usize, cores: &Cores, sent: &Answer) -> Contestant {
    let this = std::env::current_exe().unwrap();
    decides_nothing("the loop", RAW, cores.one(&this), sent, copies)
}

/// The codec on two cores, with one worker and with two.
pub(crate) fn bare_on_two_cores(cores: &Cores, sent: &Answer) -> Vec<Contestant> {
    let this = std::env::current_exe().unwrap();
    [("bare hyper, one worker, free to move", BARE), ("bare hyper, two workers", BARE_OF_TWO)]
        .map(|(name, role)| decides_nothing(name, role, cores.two(&this), sent, 1))
        .into()
}

fn decides_nothing(
    name: &'static str,
    role: &str,
    mut command: Command,
    sent: &Answer,
    copies: usize,
) -> Contestant {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("answer");
    std::fs::write(&file, &sent.bytes).unwrap();
    command.arg(role).arg(file).arg(copies.to_string());
    let (process, address) = Process::that_says(command, directory, LISTENS);
    Contestant { name, address, process, knows_keys: false, limitations: "no keys, no limits" }
}

/// All installed peers, and the reasons why others are missing.
pub(crate) fn peers(
    cores: &Cores,
    keys: &Keys,
    backend: SocketAddr,
    sent: &Answer,
) -> (Vec<Contestant>, Vec<String>) {
    let (mut here, mut absent) = (Vec::new(), Vec::new());
    for peer in &PEERS {
        let started = peer.start(cores, keys, backend, sent).and_then(|contestant| {
            if !peer.is_proven {
                contestant.check(keys, sent)?;
            }
            Ok(contestant)
        });
        match started {
            Ok(contestant) => here.push(contestant),
            Err(reason) => absent.push(format!("{}: {reason}", peer.name)),
        }
    }
    (here, absent)
}

impl Peer {
    fn start(
        &self,
        cores: &Cores,
        keys: &Keys,
        backend: SocketAddr,
        sent: &Answer,
    ) -> Result<Contestant, String> {
        let program = installed(self.program).ok_or("not installed")?;
        let modules = modules();
        if let Some(module) = self.module
            && !modules.join(module).is_file()
        {
            return Err(format!("{module} is not installed"));
        }
        let directory = TempDir::new().unwrap();
        keys.write(directory.path());
        let address = free_port();
        let file = directory.path().join(self.file);
        let with_values = |text: &str| {
            let values = [
                ("@FILE@", file.display().to_string()),
                ("@DIR@", directory.path().display().to_string()),
                ("@ADDRESS@", address.to_string()),
                ("@PORT@", address.port().to_string()),
                ("@BACKEND@", backend.to_string()),
                ("@BACKEND_PORT@", backend.port().to_string()),
                ("@MODULES@", modules.display().to_string()),
                ("@MINUTE@", MINUTE.to_string()),
                ("@DAY@", DAY.to_string()),
                ("@KEY_PATTERN@", keys.pattern()),
                ("@CREDENTIALS@", keys.credentials()),
                ("@CACHE_CONTROL@", sent.field("cache-control")),
            ];
            values.iter().fold(text.to_owned(), |text, (mark, value)| text.replace(mark, value))
        };
        std::fs::write(&file, with_values(self.settings)).unwrap();
        let mut command: Command = cores.one(&program);
        command.args(self.arguments.iter().map(|argument| with_values(argument)));
        let process = Process::that_listens(command, directory, address)
            .map_err(|said| format!("did not start: {said}"))?;
        Ok(Contestant { name: self.name, address, process, knows_keys: true, limitations: self.limitations })
    }
}

/// The directory of nginx's modules.
fn modules() -> PathBuf {
    let places = ["/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/share/nginx/modules"];
    places.iter().map(Path::new).find(|place| place.is_dir()).unwrap_or(Path::new("modules")).into()
}

impl Contestant {
    /// Checks that it does the job: the right body for every key, an error for an unknown key, decreasing limits.
    /// Returns the header fields of the gateway that it lacks, and those of its own.
    pub(crate) fn check(&self, keys: &Keys, sent: &Answer) -> Result<[Vec<String>; 2], String> {
        let get = |request: &[u8]| ask(self.address, request).map_err(|error| error.to_string());
        let (hits, stranger) = (keys.hits(), keys.refused());
        for request in &hits.requests {
            let answer = get(request)?;
            if answer.status() != 200 || answer.body() != sent.body() {
                return Err(format!("another answer: {}", String::from_utf8_lossy(&answer.bytes)));
            }
        }
        let refused = get(&stranger.requests[0])?;
        if self.knows_keys && refused.status() != 401 {
            return Err(format!("a stranger gets {}", refused.status()));
        }
        let (before, last) = (get(&hits.requests[0])?, get(&hits.requests[0])?);
        let left = |answer: &Answer| answer.field("x-ratelimit-remaining").parse::<u64>().ok();
        if self.knows_keys && left(&before).is_some() && left(&last) >= left(&before) {
            return Err("what is left does not go down".into());
        }
        let names =
            |answer: &Answer| answer.fields().into_iter().map(|(name, _)| name).collect::<Vec<String>>();
        let (its, gateway) = (names(&last), names(sent));
        let without = |these: &[String], those: &[String]| {
            these.iter().filter(|name| !those.contains(name)).cloned().collect()
        };
        Ok([without(&gateway, &its), without(&its, &gateway)])
    }
}
