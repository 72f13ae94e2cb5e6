//! THE table of settings: path, kind, default, meaning. The sample configuration is printed from it; a path that is
//! not in it is refused. The environment can say each: `upstream.timeout` is `SCOREGATE_UPSTREAM_TIMEOUT`.

use toml::Value;

/// The suffix of the setting that names the file of a secret.
pub(super) const IN_A_FILE: &str = "_file";

/// What a setting holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// An address and port.
    Address,
    /// A path of the file system.
    Path,
    /// True or false.
    Flag,
    /// A whole number from one bound to the other.
    Number(u64, u64),
    /// A stretch of time: `"250ms"`, `"10s"`, `"5m"`, `"1h"`, `"7d"`.
    Duration,
    /// A size: `"64KiB"`, `"256MiB"`, `"1GiB"`.
    Size,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of addresses and networks: `["192.0.2.1", "10.0.0.0/8"]`; with commas in the environment.
    Networks,
    /// A list of texts.
    Texts,
    /// A point in time.
    Instant,
    /// Text that is never printed.
    Secret,
}

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its path in the file.
    pub path: &'static str,
    /// What it holds.
    pub kind: ValueKind,
    /// Its value where nothing is said, as it would be written; `None` if there is none.
    pub default: Option<&'static str>,
    /// What it does.
    pub meaning: &'static str,
}

const fn setting(
    path: &'static str,
    kind: ValueKind,
    default: Option<&'static str>,
    meaning: &'static str,
) -> Setting {
    Setting { path, kind, default, meaning }
}

use ValueKind::{Address, Duration, Flag, Instant, Networks, Number, Path, Secret, Size, Text, Texts, Words};

/// Every setting there is. Tiers are a table of tables, `[tiers.NAME]`, and are read by `resolve`; so are
/// `[mapping.ENDPOINT]`, by `mapping`, and `[tls.NAME]`, by `tls`.
#[rustfmt::skip]
pub static SETTINGS: &[Setting] = &[
    setting("listen", Address, Some("\"127.0.0.1:8080\""), "Where the public port listens."),
    setting("data_dir", Path, Some("\"scoregate-data\""), "Where state is kept: keys, quotas, the Unix socket."),
    setting("upstream", Words(&["built-in"]), None, "\"built-in\" for the backend inside; for one over the network write the table [upstream] in its place."),
    setting("admin.listen", Address, Some("\"127.0.0.1:9464\""), "Where the side port listens. Keep it on loopback or behind a firewall."),
    setting("admin.hosts", Texts, Some("[]"), "Host names under which the side port is asked, such as [\"scoregate-side\"]; IP addresses and localhost always work. The environment puts commas between them."),
    setting("admin.token", Secret, None, "What the side port asks for before it shows or changes keys over TCP; at least 16 characters."),
    setting("admin.token_file", Path, None, "The file that holds the token, in place of it."),
    setting("service.name", Text, Some("\"scoregate\""), "The service's name in its documents and in the realm of a 401."),
    setting("service.license", Text, Some("\"Benchmark data by scoregate. Attribution with a link to the service is required wherever the data is displayed.\""), "The attribution notice in every answer."),
    setting("service.base_url", Text, None, "The public address, for the examples in the docs."),
    setting("service.deprecated_at", Instant, None, "Since when the API is deprecated, or from when on: every answer says so (RFC 9745)."),
    setting("service.sunset_at", Instant, None, "When the API will go: every answer says so (RFC 8594)."),
    setting("service.deprecation_link", Text, None, "Where the deprecation is described."),
    setting("cors.origins", Texts, Some("[]"), "The sites whose pages may read answers in a browser, such as \"https://dash.example.org\"; [\"*\"] for all. The environment puts commas between them."),
    setting("cors.max_age", Duration, Some("\"1h\""), "How long a browser need not ask beforehand again."),
    setting("keys.prefix", Text, Some("\"sg_live\""), "What keys begin with."),
    setting("keys.accept_imported", Flag, Some("false"), "Whether keys of another form, imported by their SHA-256, are looked up."),
    setting("guard.per_minute", Number(1, 100_000_000), Some("60"), "Refused requests a minute, for each application or address."),
    setting("upstream.url", Text, None, "The backend's base address, such as http://127.0.0.1:4000/api/v1."),
    setting("upstream.credential", Secret, None, "Sent to the backend as `Authorization: Bearer …`."),
    setting("upstream.credential_file", Path, None, "The file that holds the credential, in place of it."),
    setting("upstream.connect_timeout", Duration, Some("\"2s\""), "How long a connection to the backend may take."),
    setting("upstream.first_byte_timeout", Duration, Some("\"15s\""), "How long the backend may think."),
    setting("upstream.timeout", Duration, Some("\"20s\""), "How long a whole answer of the backend may take."),
    setting("upstream.max_concurrent_requests", Number(1, 1_024), Some("2"), "How many questions the backend is asked at once; others wait, paid tiers first."),
    setting("upstream.max_body", Size, Some("\"8MiB\""), "The largest answer of the backend that is read."),
    setting("upstream.idle_timeout", Duration, Some("\"20s\""), "How long an idle connection to the backend is kept: below the backend's own limit."),
    setting("built_in.archive", Path, None, "The archive of benchmark runs that the built-in backend scores; runs.db in the data directory, if nothing is said. `scoregate scoring import` fills it."),
    setting("freshness.refresh_interval", Duration, Some("\"1h\""), "How often the backend refreshes, where it does not say."),
    setting("freshness.stale_while_revalidate", Duration, Some("\"1d\""), "So long an overdue document is served at once while it is refreshed."),
    setting("freshness.stale_if_error", Duration, Some("\"7d\""), "So long an overdue document is served if the backend fails."),
    setting("freshness.probe", Flag, Some("true"), "Whether the backend is asked, of our own accord, if it has refreshed, and what is in use is refreshed then."),
    setting("freshness.max_wait", Duration, Some("\"20s\""), "How long a request waits for a fetch."),
    setting("cache.max_bytes", Size, Some("\"256MiB\""), "Room for stored documents."),
    setting("cache.disk_max_bytes", Size, Some("\"64MiB\""), "Room for the last good documents on disk, from which a restart goes on."),
    setting("server.max_connections", Number(1, 1_000_000), Some("10000"), "The most connections at once on the public port."),
    setting("server.max_connections_per_address", Number(1, 1_000_000), Some("1024"), "The most connections at once of one address; an IPv6 address counts with its /64."),
    setting("server.head_timeout", Duration, Some("\"9s\""), "How long a new connection may take to its first request, and the head of any request to its end."),
    setting("server.idle_timeout", Duration, Some("\"60s\""), "How long a connection may idle between two requests."),
    setting("server.request_timeout", Duration, Some("\"60s\""), "How long a request may take from its head to the last byte of its answer."),
    setting("server.write_timeout", Duration, Some("\"20s\""), "How long a client may take to read 8 KiB of a response that waits for it; one that is slower is disconnected."),
    setting("server.max_connection_age", Duration, Some("\"1h\""), "So old a connection becomes; it ends with the answer that comes next."),
    setting("server.plain_http", Flag, Some("false"), "Whether HTTP without TLS may be spoken on other addresses than loopback: only where a proxy on a network of your own speaks TLS."),
    setting("server.shutdown_timeout", Duration, Some("\"30s\""), "How long open requests may take to finish when the server stops."),
    setting("server.workers", Number(1, 1_024), None, "Threads that serve; one for each core if nothing is said."),
    setting("proxies.trusted", Networks, Some("[]"), "Proxies whose header on their clients is believed, as a list of addresses and networks such as [\"10.0.0.0/8\"]. Nobody else's is."),
    setting("proxies.header", Words(&["x-forwarded-for", "forwarded", "none"]), Some("\"x-forwarded-for\""), "The header they write. Another that a client sends through them is not believed."),
    setting("proxies.proxy_protocol", Networks, Some("[]"), "Proxies that begin each connection with a PROXY header, of version 1 or 2. A connection of theirs without one is refused."),
    setting("overload.cached_slots", Number(1, 1_000_000), Some("1024"), "Requests at once that can be answered from what is stored; beyond that 503."),
    setting("overload.waiting_slots", Number(1, 1_000_000), Some("16384"), "Requests at once that wait for the backend; beyond that 503."),
    setting("overload.queue_length", Number(0, 1_000_000), Some("512"), "How many may queue for a place among the ones, and among the others."),
    setting("overload.queue_timeout", Duration, Some("\"10ms\""), "How long they queue."),
    setting("log.format", Words(&["text", "json"]), Some("\"text\""), "How the log looks."),
    setting("log.access", Flag, Some("true"), "Whether requests are told on standard output, a line each: all that fail by our fault or the backend's, all slow ones, and some of the rest."),
    setting("log.slow_threshold", Duration, Some("\"1s\""), "From this on a request is slow."),
    setting("log.sample_one_in", Number(0, 1_000_000), Some("100"), "Of the requests that are well and quick, one in so many is told; 0 for none."),
    setting("log.level", Text, Some("\"info\""), "How much the log says: error, warn, info, debug, trace, or a filter."),
];

impl Setting {
    /// Its value where nothing is said.
    pub(super) fn default_value(&self) -> Option<Value> {
        let table: toml::Table = toml::from_str(&format!("value = {}", self.default?)).ok()?;
        table.get("value").cloned()
    }
}

/// The row of a path.
pub(super) fn setting_of(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

/// The variable of the environment that says a setting.
pub(super) fn variable(path: &str) -> String {
    format!("SCOREGATE_{}", path.replace('.', "_").to_uppercase())
}

impl ValueKind {
    /// What would do, for an error.
    pub(super) fn remedy(self) -> String {
        match self {
            Self::Text | Self::Secret => "write a text in quotes".into(),
            Self::Address => "write an address and a port, such as \"127.0.0.1:8080\"".into(),
            Self::Path => "write a path in quotes".into(),
            Self::Flag => "write true or false".into(),
            Self::Number(least, most) => format!("write a whole number from {least} to {most}"),
            Self::Duration => {
                "write a time longer than nothing, such as \"250ms\", \"10s\", \"5m\", \"1h\" or \"7d\""
                    .into()
            }
            Self::Networks => {
                "write a list of addresses and networks, such as [\"192.0.2.1\", \"10.0.0.0/8\"]".into()
            }
            Self::Size => "write a size, such as \"64KiB\", \"256MiB\" or \"1GiB\"".into(),
            Self::Texts => "write a list of texts, such as [\"one\", \"another\"]; in the environment one text with commas".into(),
            Self::Instant => "write an instant, such as \"2027-01-31T00:00:00Z\"".into(),
            Self::Words(words) => format!("write one of \"{}\"", words.join("\", \"")),
        }
    }
}
