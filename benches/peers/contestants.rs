//! The contestants besides the gateway: how each is found, started and checked, and what it cannot do.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{
    answer::{Answer, ask},
    floor::{ACCESSES, BARE, BARE_HTTP2, BARE_OF_TWO, BARE_TLS, LISTENS, RAW, SKETCH},
    job::{DAY, Keys, MINUTE},
    machine::{Cores, installed},
    process::{Process, address_after, free_port},
    transport::ServerCertificate,
};

/// A running contestant.
pub struct Contestant {
    /// Its name in the table.
    pub name: &'static str,
    /// Its address.
    pub address: SocketAddr,
    /// The process whose CPU time and memory are measured.
    pub process: Process,
    /// Whether it refuses unknown keys.
    pub knows_keys: bool,
    /// Whether what is left goes down with every request.
    pub counts_down: bool,
    /// The part of the job that it does not do.
    pub limitations: &'static str,
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
    /// Whether its limits are refilled all the time, so that what is left need not go down. Then a small limit is reached
    /// instead.
    refills: bool,
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
        refills: false,
    },
    Peer {
        name: "nginx+Lua",
        program: "nginx",
        module: Some("ngx_http_lua_module.so"),
        file: "nginx-lua.conf",
        settings: include_str!("configs/nginx-lua.conf"),
        arguments: &NGINX,
        limitations: "counts in memory only; fixed minutes",
        refills: false,
    },
    Peer {
        name: "HAProxy",
        program: "haproxy",
        module: None,
        file: "haproxy.cfg",
        settings: include_str!("configs/haproxy.cfg"),
        arguments: &["-db", "-f", "@FILE@"],
        limitations: "counts in memory only; sliding day",
        refills: false,
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
        refills: false,
    },
    Peer {
        name: "Envoy",
        program: "envoy",
        module: None,
        file: "envoy.yaml",
        settings: include_str!("configs/envoy.yaml"),
        arguments: &[
            "-c",
            "@FILE@",
            "--concurrency",
            "1",
            "--disable-hot-restart",
            "-l",
            "error",
        ],
        limitations: "counts in memory only; both limits are refilled all the time; reports one of them",
        refills: true,
    },
];

/// A server that is this program again, or another build of it, and sends these bytes.
#[derive(Clone, Copy)]
pub struct Floor<'s> {
    pub cores: &'s Cores,
    pub keys: &'s Keys,
    pub certificate: &'s ServerCertificate,
    pub program: &'s Path,
}

impl Floor<'_> {
    /// The lower bounds, and the sketch.
    pub fn all(self, sent: &Answer) -> Vec<Contestant> {
        let names = [
            ("raw epoll loop", RAW),
            ("bare hyper", BARE),
            ("sketch", SKETCH),
        ];
        names.map(|(name, role)| self.one(name, role, sent)).into()
    }

    /// The codec of HTTP/1.1 and the sketch, of the build with the settings of the shipped program.
    pub fn shipped(self, sent: &Answer) -> Vec<Contestant> {
        let names = [("bare hyper, shipped", BARE), ("sketch, shipped", SKETCH)];
        names.map(|(name, role)| self.one(name, role, sent)).into()
    }

    /// The codec behind TLS, and that of HTTP/2.
    pub fn transports(self, sent: &Answer) -> [Contestant; 2] {
        [
            ("bare hyper, TLS", BARE_TLS),
            ("bare hyper, HTTP/2", BARE_HTTP2),
        ]
        .map(|(name, role)| self.one(name, role, sent))
    }

    /// The codec with another response.
    pub fn bare(self, name: &'static str, sent: &Answer) -> Contestant {
        self.one(name, BARE, sent)
    }

    /// The codec on two cores, with one worker and with two.
    pub fn on_two_cores(self, sent: &Answer) -> Vec<Contestant> {
        [
            ("bare hyper, one worker, free to move", BARE),
            ("bare hyper, two workers", BARE_OF_TWO),
        ]
        .map(|(name, role)| self.start(name, role, self.cores.two(self.program), sent, 1))
        .into()
    }

    /// The loop, with this many copies of the response.
    pub fn loop_over(self, copies: usize, sent: &Answer) -> Contestant {
        self.start("the loop", RAW, self.cores.one(self.program), sent, copies)
    }

    /// The loop, with the memory accesses of a hit with this many accounts.
    pub fn loop_with(self, accounts: usize, sent: &Answer) -> Contestant {
        self.start(
            "the loop",
            ACCESSES,
            self.cores.one(self.program),
            sent,
            accounts,
        )
    }

    fn one(self, name: &'static str, role: &str, sent: &Answer) -> Contestant {
        self.start(name, role, self.cores.one(self.program), sent, 1)
    }

    fn start(
        self,
        name: &'static str,
        role: &str,
        mut command: Command,
        sent: &Answer,
        copies: usize,
    ) -> Contestant {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("answer");
        std::fs::write(&file, &sent.bytes).unwrap();
        self.keys.write(directory.path());
        self.certificate.write(directory.path());
        command.arg(role).arg(file).arg(copies.to_string());
        let (process, said) = Process::that_says(command, directory, LISTENS);
        let address = address_after(LISTENS, &said);
        let knows_keys = role == SKETCH;
        let limitations = if knows_keys {
            "counts in memory only; sliding day; nothing besides"
        } else {
            "no keys, no limits"
        };
        Contestant {
            name,
            address,
            process,
            knows_keys,
            counts_down: knows_keys,
            limitations,
        }
    }
}

/// All installed peers, and the reasons why others are missing.
pub fn peers(
    cores: &Cores,
    keys: &Keys,
    backend: SocketAddr,
    sent: &Answer,
) -> (Vec<Contestant>, Vec<String>) {
    let mut here = Vec::new();
    let mut absent = Vec::new();
    for peer in &PEERS {
        let started = peer
            .start(cores, keys, backend, sent, MINUTE)
            .and_then(|contestant| {
                if peer.refills {
                    peer.start(cores, keys, backend, sent, 2)?
                        .reaches_a_limit_of_two(keys)?;
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
        minute: u32,
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
                ("@MINUTE@", minute.to_string()),
                ("@DAY@", DAY.to_string()),
                ("@KEY_PATTERN@", keys.pattern()),
                ("@CREDENTIALS@", keys.credentials()),
                ("@CACHE_CONTROL@", sent.field("cache-control")),
            ];
            values.iter().fold(text.to_owned(), |text, (mark, value)| {
                text.replace(mark, value)
            })
        };
        std::fs::write(&file, with_values(self.settings)).unwrap();
        let mut command: Command = cores.one(&program);
        command.args(self.arguments.iter().map(|argument| with_values(argument)));
        let process = Process::that_listens(command, directory, address)
            .map_err(|said| format!("did not start: {said}"))?;
        Ok(Contestant {
            name: self.name,
            address,
            process,
            knows_keys: true,
            counts_down: !self.refills,
            limitations: self.limitations,
        })
    }
}

/// The directory of nginx's modules.
fn modules() -> PathBuf {
    let places = [
        "/usr/lib/nginx/modules",
        "/usr/lib64/nginx/modules",
        "/usr/share/nginx/modules",
    ];
    places
        .iter()
        .map(Path::new)
        .find(|place| place.is_dir())
        .unwrap_or(Path::new("modules"))
        .into()
}

impl Contestant {
    /// Checks that each key has a limit of its own, which is two.
    fn reaches_a_limit_of_two(&self, keys: &Keys) -> Result<(), String> {
        for request in keys.hits().requests.iter().take(2) {
            let statuses =
                [(); 3].map(|()| ask(self.address, request).map_or(0, |answer| answer.status()));
            if statuses != [200, 200, 429] {
                return Err(format!("with a limit of two, requests get {statuses:?}"));
            }
        }
        Ok(())
    }

    /// Checks that it does the job: the right body for every key, an error for an unknown key, decreasing limits.
    /// Returns the header fields of the gateway that it lacks, and those of its own.
    pub fn check(&self, keys: &Keys, sent: &Answer) -> Result<[Vec<String>; 2], String> {
        let get = |request: &[u8]| ask(self.address, request).map_err(|error| error.to_string());
        let hits = keys.hits();
        let stranger = keys.refused();
        for request in &hits.requests {
            let answer = get(request)?;
            if answer.status() != 200 || answer.body() != sent.body() {
                return Err(format!(
                    "another answer: {}",
                    String::from_utf8_lossy(&answer.bytes)
                ));
            }
        }
        let refused = get(&stranger.requests[0])?;
        if self.knows_keys && refused.status() != 401 {
            return Err(format!("a stranger gets {}", refused.status()));
        }
        let before = get(&hits.requests[0])?;
        let last = get(&hits.requests[0])?;
        let left = |answer: &Answer| answer.field("x-ratelimit-remaining").parse::<u64>().ok();
        if self.counts_down && left(&before).is_some() && left(&last) >= left(&before) {
            return Err("what is left does not go down".into());
        }
        let names = |answer: &Answer| {
            answer
                .fields()
                .into_iter()
                .map(|(name, _)| name)
                .collect::<Vec<String>>()
        };
        let its = names(&last);
        let gateway = names(sent);
        let without = |these: &[String], those: &[String]| {
            these
                .iter()
                .filter(|name| !those.contains(name))
                .cloned()
                .collect()
        };
        Ok([without(&gateway, &its), without(&its, &gateway)])
    }
}
