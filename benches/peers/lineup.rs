//! The participants of a run: contestants with the same body, and pairs of the gateway and the bare codec for other responses
//! and transports.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use crate::{
    answer::{Answer, ask},
    backend,
    contestants::{Contestant, Floor, peers},
    gateway::{self, GatewayUnderTest, PLAIN},
    job::{Job, Keys},
    machine::Cores,
    transport::{ServerCertificate, Transport},
};

const WITHOUT_ACCESS_LOG: GatewayUnderTest = GatewayUnderTest {
    name: "scoregate, no access log",
    has_access_log: false,
    ..PLAIN
};
const ONE_OF_TWO: GatewayUnderTest = GatewayUnderTest {
    name: "one worker, free to move",
    has_two_cores: true,
    ..PLAIN
};
const TWO: GatewayUnderTest = GatewayUnderTest {
    name: "two workers",
    workers: 2,
    ..ONE_OF_TWO
};

/// Documents that are requested in turn, and settings with space for a fraction of them.
const FETCHED: usize = 2_000;
const FEW_STORED: &str = "cache.max_bytes = \"1MiB\"\ncache.disk_max_bytes = \"1MiB\"\nupstream.max_concurrent_requests = 64\n";

/// Results of `deploy/dist/build.sh`: the shipped program, and this bench with the same settings.
const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/dist/scoregate");
const BENCH_AS_SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/dist/peers");

/// Common to all contestants of a run.
pub struct Setting {
    pub cores: Cores,
    pub keys: Keys,
    pub certificate: &'static ServerCertificate,
    pub this: PathBuf,
    /// Words in the names of the measured rows; empty for all.
    pub words: Vec<String>,
    /// Paths of other builds of the program.
    pub builds: Vec<String>,
}

/// The contestants with one body, and the response of all of them.
pub struct Lineup {
    pub plain: Contestant,
    pub sent: Answer,
    pub absent: Vec<String>,
    others: Vec<Contestant>,
    backend: SocketAddr,
}

/// A response or a transport: the gateway, if it is not the plain one, and the codec with the same.
pub struct Pair {
    pub name: &'static str,
    pub gateway: Option<Contestant>,
    pub bare: Contestant,
    pub job: Job,
}

impl Setting {
    /// Whether a row is measured.
    pub fn is_selected(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }

    /// Servers that are this program.
    pub fn floor<'s>(&'s self, program: &'s Path) -> Floor<'s> {
        Floor {
            cores: &self.cores,
            keys: &self.keys,
            certificate: self.certificate,
            program,
        }
    }

    fn start(&self, gateway: GatewayUnderTest, backend: SocketAddr) -> Contestant {
        gateway::start(gateway, &self.cores, &self.keys, backend)
    }
}

impl Lineup {
    /// Starts the gateway and the selected others, with this many bytes of data in the body.
    pub fn start(setting: &Setting, data: usize) -> Self {
        let backend = backend::of_scores(data);
        let plain = setting.start(PLAIN, backend);
        let sent = hit(&plain, &setting.keys, data);
        let mut others: Vec<Contestant> = setting
            .builds
            .iter()
            .map(|path| setting.start(build_at("", path), backend))
            .collect();
        if Path::new(SHIPPED).is_file() {
            others.push(setting.start(build_at("scoregate, shipped", SHIPPED), backend));
        }
        others.push(setting.start(WITHOUT_ACCESS_LOG, backend));
        others.extend(setting.floor(&setting.this).all(&sent));
        let as_shipped = Path::new(BENCH_AS_SHIPPED);
        if as_shipped.is_file() {
            others.extend(setting.floor(as_shipped).shipped(&sent));
        }
        let (peers, absent) = peers(
            &setting.cores,
            &setting.keys,
            backend::of_answer(&sent),
            &sent,
        );
        others.extend(peers);
        others.retain(|other| other.name.contains('/') || setting.is_selected(other.name));
        Self {
            plain,
            sent,
            absent,
            others,
            backend,
        }
    }

    /// The gateway, then the others.
    pub fn all(&self) -> impl Iterator<Item = &Contestant> {
        [&self.plain].into_iter().chain(&self.others)
    }

    /// The size of the response.
    pub fn output(&self) -> String {
        let body = self.sent.body().len();
        let whole = self.sent.bytes.len();
        format!("{} bytes of head and {body} of body", whole - body)
    }

    /// Checks that every contestant does the job; prints what each lacks.
    pub fn check(&self, setting: &Setting) {
        for contestant in self.all() {
            let [missing, own] = contestant
                .check(&setting.keys, &self.sent)
                .unwrap_or_else(|wrong| panic!("{}: {wrong}", contestant.name));
            let lists = [("lacks", missing), ("adds", own)];
            let fields: Vec<String> = lists
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(word, names)| format!("{word} {}", names.join(", ")))
                .collect();
            println!(
                "{:<38} {}",
                contestant.name,
                [contestant.limitations.to_owned(), fields.join("; ")]
                    .join("; ")
                    .trim_matches([';', ' '])
            );
        }
        for line in &self.absent {
            println!("absent: {line}");
        }
    }

    /// The selected pairs, after that of hits on HTTP/1.1 without TLS.
    pub fn pairs(&self, setting: &Setting) -> Vec<Pair> {
        let keys = &setting.keys;
        let floor = setting.floor(&setting.this);
        let mut pairs = Vec::new();
        for (name, job) in [
            ("304", keys.unchanged(&self.sent)),
            ("401", keys.refused()),
            ("429", keys.limited()),
        ] {
            if setting.is_selected(name) {
                // The last of them is the answer that the job gets.
                let answer = job
                    .requests
                    .iter()
                    .cycle()
                    .take(2)
                    .map(|request| ask(self.plain.address, request).unwrap());
                let bare = floor.bare(name, &answer.last().unwrap());
                pairs.push(Pair {
                    name,
                    gateway: None,
                    bare,
                    job,
                });
            }
        }
        let [tls, http2] = floor.transports(&self.sent);
        if setting.is_selected("TLS") {
            let gateway = GatewayUnderTest {
                name: "TLS",
                certificate: Some(setting.certificate),
                ..PLAIN
            };
            let job = keys.hits().over(setting.certificate.transport());
            let gateway = Some(setting.start(gateway, self.backend));
            pairs.push(Pair {
                name: "TLS",
                gateway,
                bare: tls,
                job,
            });
        }
        if setting.is_selected("HTTP/2") {
            let job = keys.hits().over(Transport::Http2);
            pairs.push(Pair {
                name: "HTTP/2",
                gateway: None,
                bare: http2,
                job,
            });
        }
        if !pairs.is_empty() {
            let name = "hit";
            let bare = floor.bare("hit", &self.sent);
            pairs.insert(
                0,
                Pair {
                    name,
                    gateway: None,
                    bare,
                    job: keys.hits(),
                },
            );
        }
        pairs
    }

    /// The gateway with fewer stored documents than are requested in turn, so that each is fetched: from a backend without
    /// TLS, and with it.
    pub fn misses(setting: &Setting) -> Vec<(Contestant, Job)> {
        let certificate = setting.certificate;
        [
            ("scoregate, miss", None),
            ("scoregate, miss over HTTPS", Some(certificate)),
        ]
        .into_iter()
        .filter(|(name, _)| setting.is_selected(name))
        .map(|(name, backend_certificate)| {
            let backend =
                backend::of_models(FETCHED, backend_certificate.map(ServerCertificate::server));
            let gateway = GatewayUnderTest {
                name,
                settings: FEW_STORED,
                backend_certificate,
                ..PLAIN
            };
            (
                setting.start(gateway, backend),
                setting.keys.details(FETCHED),
            )
        })
        .collect()
    }

    /// The gateway on two cores with one worker and with two, and the codec likewise.
    pub fn on_two_cores(&self, setting: &Setting) -> Vec<Contestant> {
        if !setting.is_selected(TWO.name) {
            return Vec::new();
        }
        let gateways = [ONE_OF_TWO, TWO].map(|gateway| setting.start(gateway, self.backend));
        gateways
            .into_iter()
            .chain(setting.floor(&setting.this).on_two_cores(&self.sent))
            .collect()
    }
}

/// Another build of the program, named by its path if it has no name.
fn build_at(name: &'static str, path: &str) -> GatewayUnderTest {
    let path: &'static str = path.to_owned().leak();
    GatewayUnderTest {
        name: if name.is_empty() { path } else { name },
        build: Some(Path::new(path)),
        ..PLAIN
    }
}

/// The gateway's cached response.
fn hit(plain: &Contestant, keys: &Keys, data: usize) -> Answer {
    let request = &keys.hits().requests[0];
    let first = ask(plain.address, request).unwrap();
    assert_eq!(
        first.status(),
        200,
        "{}",
        String::from_utf8_lossy(&first.bytes)
    );
    let sent = ask(plain.address, request).unwrap();
    assert!(
        sent.field("cache-status").contains("; hit"),
        "{}",
        sent.field("cache-status")
    );
    // The envelope around the data.
    assert!(
        (data + 200..data + 400).contains(&sent.body().len()),
        "{} bytes of body",
        sent.body().len()
    );
    sent
}
