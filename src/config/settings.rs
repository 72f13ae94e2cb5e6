//! The table of settings: path, kind, default, meaning. The sample configuration is generated from it, and other paths are
//! rejected. An environment variable can set each: `upstream.timeout` is `SCOREGATE_UPSTREAM_TIMEOUT`.

use toml::Value;

/// The suffix of the setting that names the file of a secret.
pub(super) const IN_A_FILE: &str = "_file";

/// The type of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// A string.
    Text,
    /// An address and port.
    Address,
    /// A file system path.
    Path,
    /// True or false.
    Flag,
    /// An integer between two bounds.
    Number(u64, u64),
    /// A duration: `"250ms"`, `"10s"`, `"5m"`, `"1h"`, `"7d"`.
    Duration,
    /// A size: `"64KiB"`, `"256MiB"`, `"1GiB"`.
    Size,
    /// One of these strings.
    Words(&'static [&'static str]),
    /// A list of addresses and networks: `["192.0.2.1", "10.0.0.0/8"]`; separated by commas in the environment.
    Networks,
    /// A list of strings.
    Texts,
    /// An instant.
    Instant,
    /// A string that is never printed.
    Secret,
}

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its path in the file.
    pub path: &'static str,
    /// Its type.
    pub kind: ValueKind,
    /// Its default value as TOML; `None` if there is none.
    pub default: Option<&'static str>,
    /// Its help text.
    pub meaning: &'static str,
}

const fn setting(
    path: &'static str,
    kind: ValueKind,
    default: Option<&'static str>,
    meaning: &'static str,
) -> Setting {
    Setting {
        path,
        kind,
        default,
        meaning,
    }
}

use ValueKind::{
    Address, Duration, Flag, Instant, Networks, Number, Path, Secret, Size, Text, Texts, Words,
};

/// All settings but those in named tables: `[tiers.NAME]`, `[mapping.ENDPOINT]`, `[tls.NAME]` and `[freshness.ENDPOINT]`.
#[rustfmt::skip]
pub static SETTINGS: &[Setting] = &[
    setting("listen", Address, Some("\"127.0.0.1:8080\""), "Address and port of the public port."),
    setting("data_dir", Path, Some("\"scoregate-data\""), "Directory of the state: keys, quotas, stored documents, the Unix socket."),
    setting("store.url", Text, None, "URL of a PostgreSQL database for keys and quotas that several gateways share, such as postgresql://gateway@db1:5432,db2:5432/scoregate; default: a file in the data directory. Of several hosts the first writable one is used."),
    setting("store.listen_url", Text, None, "URL of the database for notifications of changes, if store.url is that of a pooler; default: store.url."),
    setting("store.password", Secret, None, "Password of the database user."),
    setting("store.password_file", Path, None, "File that contains the password of the database user."),
    setting("store.ca_file", Path, None, "Certificates of the authorities that may issue the database's certificate, in PEM. Required for TLS."),
    setting("store.client_certificate", Path, None, "Client certificate for the database, in PEM."),
    setting("store.client_key", Path, None, "Private key of store.client_certificate, in PEM."),
    setting("store.plain_text", Flag, Some("false"), "Allow connections without TLS to a database on another machine. Only for a private network."),
    setting("store.gateways", Number(1, 1_000), Some("3"), "Maximum number of gateways on the database. Each uses an equal part of every minute limit, and of the grace of paid tiers, while the database is unreachable."),
    setting("store.node_name", Text, None, "Name of this gateway in `scoregate nodes`; default: the host name."),
    setting("store.schema", Text, Some("\"scoregate\""), "Schema of the tables in the database."),
    setting("store.start_timeout", Duration, Some("\"10s\""), "Time for which a start retries the database before it uses the local copy of the keys, or fails if there is none. Keep it below the start timeout of the service manager."),
    setting("store.timeout", Duration, Some("\"2s\""), "Timeout for connecting to the database, for each transaction in it, and for requests that wait for a transaction."),
    setting("upstream", Words(&["built-in"]), None, "\"built-in\" for the built-in backend; for a backend over HTTP, write a table [upstream] instead."),
    setting("admin.listen", Address, Some("\"127.0.0.1:9464\""), "Address and port of the side port. Keep it on loopback or behind a firewall."),
    setting("admin.hosts", Texts, Some("[]"), "Accepted host names of the side port, such as [\"scoregate-side\"]; IP addresses and localhost are always accepted. In the environment, separated by commas."),
    setting("admin.token", Secret, None, "Bearer token for reading and changing keys on the side port over TCP; at least 16 characters."),
    setting("admin.token_file", Path, None, "File that contains the bearer token of the side port."),
    setting("service.name", Text, Some("\"scoregate\""), "Name of the service in its documents and in the realm of a 401."),
    setting("service.license", Text, Some("\"Benchmark data by scoregate. Attribution with a link to the service is required wherever the data is displayed.\""), "Attribution notice in every response with data."),
    setting("service.base_url", Text, None, "Public base URL of the service, for the examples in the documentation and for links that must be absolute, such as those of /.well-known/api-catalog."),
    setting("service.deprecated_at", Instant, None, "Instant from which the API is deprecated; sent in every response (RFC 9745)."),
    setting("service.sunset_at", Instant, None, "Instant at which the API is switched off; sent in every response (RFC 8594)."),
    setting("service.deprecation_link", Text, None, "URL of the deprecation notice."),
    setting("site.status_page", Flag, Some("false"), "Serve a status page at /status, with an Atom feed. The backend is then polled for refreshes without client requests too."),
    setting("site.contact_name", Text, None, "Name of the contact in the API description."),
    setting("site.contact_email", Text, None, "E-mail address of the contact, in the API description and on /docs."),
    setting("site.contact_url", Text, None, "URL of the contact, in the API description and on /docs."),
    setting("site.terms_url", Text, None, "URL of the terms of service; default: the section of /docs."),
    setting("site.docs_url", Text, None, "URL of further documentation, which the API description and /docs link to."),
    setting("site.security_contact", Text, None, "URL for reports of vulnerabilities, which begins with mailto: or https://. It is published in /.well-known/security.txt (RFC 9116), which does not exist without it."),
    setting("site.security_policy_url", Text, None, "URL of the policy for reports of vulnerabilities, which begins with https://."),
    setting("site.sign_up", Flag, Some("false"), "Let people sign up by e-mail and manage their applications and keys at /account. Needs service.base_url, TLS and mail.server; on loopback only mail.server or mail.directory."),
    setting("site.tier", Text, None, "Tier of applications that people create; default: the first tier."),
    setting("site.applications_per_account", Number(1, 1_000), Some("1"), "Maximum number of applications of an account."),
    setting("site.upgrade_url", Text, None, "URL where higher tiers are available, which the account pages and refusals with 403 and 429 name."),
    setting("site.terms", Texts, None, "Terms of use, one string each, which /docs lists and people accept when they sign up; default: the four of the data API. In the environment, separated by commas."),
    setting("site.terms_version", Text, Some("\"1\""), "Version of the terms of use. It is recorded with the acceptance. After a change, people must accept the terms again at their next sign-in."),
    setting("site.allowed_mail_domains", Texts, Some("[]"), "Mail domains that can sign up and sign in, with their subdomains; default: all. In the environment, separated by commas."),
    setting("site.denied_mail_domains", Texts, Some("[]"), "Mail domains that cannot sign up or sign in, with their subdomains. In the environment, separated by commas."),
    setting("site.sign_in_links_per_hour", Number(1, 1_000_000), Some("60"), "Maximum number of links by e-mail that one client address can request in an hour; an IPv6 /64 counts as one address. All addresses in an IPv6 /56 get twice as many, in an IPv6 /48 or an IPv4 /24 four times as many."),
    setting("site.max_sign_in_links_per_minute", Number(1, 1_000_000), Some("120"), "Maximum number of links by e-mail in a minute from all client addresses; more are refused with 503. A third of it is kept for networks that have used little of site.sign_in_links_per_hour."),
    setting("site.accounts_per_day", Number(1, 1_000_000), Some("10"), "Maximum number of new accounts with addresses of one mail domain that one client address can create in a day; for larger networks as for site.sign_in_links_per_hour."),
    setting("site.webhooks", Flag, Some("false"), "Let owners add webhooks, which get their notices as signed messages over HTTPS. Gateways then connect to hosts that owners choose, at public addresses and the ports 443 and 8443."),
    setting("cors.origins", Texts, Some("[]"), "Origins whose pages may read responses in a browser, such as \"https://dash.example.org\"; [\"*\"] for all. In the environment, separated by commas."),
    setting("cors.max_age", Duration, Some("\"1h\""), "Time for which browsers may cache a preflight response."),
    setting("keys.prefix", Text, Some("\"sg_live\""), "Prefix of API keys."),
    setting("keys.accept_imported", Flag, Some("false"), "Accept keys of other formats that were imported by their SHA-256."),
    setting("keys.max_age", Duration, None, "Maximum age of the last reading of keys from the database; above it all requests are refused with 503; default: unlimited."),
    setting("leaks.public_keys", Text, None, "File or URL of the public keys that sign reports of leaked keys, in the form of https://api.github.com/meta/public_keys/secret_scanning. A file is read again every 10 s, a URL every hour. With it reports are received at /secret-scanning; default: they are not."),
    setting("leaks.action", Words(&["revoke", "expire"]), Some("\"revoke\""), "Change to a leaked key: it is revoked, or it expires after an hour."),
    setting("operator.webhook", Text, None, "URL that gets signed messages about new accounts and, once a day, about suspects; https:// or http://, and its host may be private. Default: nobody gets them."),
    setting("operator.webhook_secret", Secret, None, "Secret that signs the messages to operator.webhook (Standard Webhooks): whsec_ and at least 24 bytes in Base64."),
    setting("operator.webhook_secret_file", Path, None, "File that contains the secret that signs the messages to operator.webhook."),
    setting("mcp.enabled", Flag, Some("false"), "Serve the endpoints as tools for language models at /mcp (Model Context Protocol). A call needs a key and costs as much as a request."),
    setting("suspects.days", Number(1, 40), Some("3"), "Days on which a rule about misuse must be fulfilled before `scoregate suspects` lists the application."),
    setting("suspects.hour_percent", Number(1, 100), Some("40"), "Share of the models in percent that a mirror requests in an hour."),
    setting("suspects.hours", Number(1, 24), Some("2"), "Hours of a day in which a mirror requests suspects.hour_percent of the models."),
    setting("suspects.day_percent", Number(1, 100), Some("80"), "Share of the models in percent that a mirror requests systematically in the course of a day."),
    setting("suspects.group_percent", Number(1, 100), Some("70"), "Share of the models in percent that several accounts of one owner request together in an hour."),
    setting("suspects.networks", Number(1, 192), Some("8"), "Networks from which a shared key is used in an hour; /24 or /48."),
    setting("suspects.products", Number(1, 192), Some("8"), "Products in the user agents with which a shared key is used in the same hour."),
    setting("suspects.documents", Number(1, 4_294_967_295), Some("1000"), "Documents that an inefficient poller receives in a day."),
    setting("suspects.repeated_percent", Number(1, 100), Some("98"), "Share of the documents in percent that an inefficient poller received before in the same hour."),
    setting("guard.per_minute", Number(1, 100_000_000), Some("60"), "Refused requests allowed per minute, per application or client address."),
    setting("upstream.url", Text, None, "Base URL of the backend, such as http://127.0.0.1:4000/api/v1."),
    setting("upstream.urls", Texts, Some("[]"), "Base URLs of a backend with several addresses, instead of upstream.url; each is used while the ones before it fail. In the environment, separated by commas."),
    setting("upstream.credential", Secret, None, "Credential sent to the backend."),
    setting("upstream.credential_header", Text, Some("\"Authorization\""), "Header of upstream.credential; `Authorization` has the scheme `Bearer`, other headers have the credential alone."),
    setting("upstream.credential_file", Path, None, "File that contains the credential sent to the backend."),
    setting("upstream.ca_file", Path, None, "Certificates of the authorities that may issue the backend's certificate, in PEM; default: the public authorities."),
    setting("upstream.client_certificate", Path, None, "Client certificate for the backend, in PEM."),
    setting("upstream.client_key", Path, None, "Private key of upstream.client_certificate, in PEM."),
    setting("upstream.server_name", Text, None, "Name in the backend's certificate; default: the host of upstream.url."),
    setting("upstream.min_tls_version", Words(&["1.2", "1.3"]), Some("\"1.2\""), "Oldest TLS version accepted from the backend."),
    setting("upstream.connect_timeout", Duration, Some("\"2s\""), "Timeout for connecting to the backend."),
    setting("upstream.first_byte_timeout", Duration, Some("\"15s\""), "Timeout for the first byte of a backend response."),
    setting("upstream.timeout", Duration, Some("\"20s\""), "Timeout for a whole backend response."),
    setting("upstream.max_concurrent_requests", Number(1, 1_024), Some("2"), "Maximum concurrent requests to the backend; more are queued, those of paid tiers first."),
    setting("upstream.max_body", Size, Some("\"8MiB\""), "Maximum size of a backend response."),
    setting("upstream.idle_timeout", Duration, Some("\"20s\""), "Time after which an idle backend connection is closed; set it below the backend's own limit."),
    setting("built_in.archive", Path, None, "Archive of benchmark runs for the built-in backend; default: runs.db in the data directory. `scoregate scoring import` adds runs."),
    setting("freshness.refresh_interval", Duration, Some("\"1h\""), "Refresh interval of the backend, where its responses do not state one."),
    setting("freshness.stale_while_revalidate", Duration, Some("\"1d\""), "Maximum time that an overdue document is served immediately while it is refreshed."),
    setting("freshness.stale_if_error", Duration, Some("\"7d\""), "Maximum time that an overdue document is served if the backend fails."),
    setting("freshness.probe", Flag, Some("true"), "Probe the backend for a refresh without a client request, then refresh documents in use."),
    setting("freshness.max_wait", Duration, Some("\"20s\""), "Maximum time that a request waits for a fetch."),
    setting("cache.max_bytes", Size, Some("\"256MiB\""), "Maximum size of stored documents in memory."),
    setting("cache.disk_max_bytes", Size, Some("\"64MiB\""), "Maximum size of the copies of documents on disk, which are loaded at a restart."),
    setting("server.max_connections", Number(1, 1_000_000), Some("10000"), "Maximum connections on the public port."),
    setting("server.max_connections_per_address", Number(1, 1_000_000), Some("1024"), "Maximum connections per client address; an IPv6 /64 counts as one address."),
    setting("server.max_connections_per_application", Number(1, 1_000_000), Some("256"), "Maximum connections per application, or its requests per minute if that is more; further ones are closed after a response. Connections of trusted proxies are not counted."),
    setting("server.head_timeout", Duration, Some("\"9s\""), "Timeout for the first request of a connection, and for each request head."),
    setting("server.idle_timeout", Duration, Some("\"60s\""), "Time after which an idle client connection is closed."),
    setting("server.request_timeout", Duration, Some("\"60s\""), "Timeout from a request head to the last byte of its response."),
    setting("server.write_timeout", Duration, Some("\"20s\""), "Time in which a client has to read 8 KiB of a pending response; slower clients are disconnected."),
    setting("server.max_connection_age", Duration, Some("\"1h\""), "Maximum connection age; the connection is closed after its next response."),
    setting("server.plain_http", Flag, Some("false"), "Allow HTTP without TLS on non-loopback addresses. Only for a TLS proxy on a private network."),
    setting("server.shutdown_delay", Duration, None, "Time after a stop signal in which /readyz returns 503 and requests are served as before, so that a load balancer can select other servers; default: none."),
    setting("server.shutdown_timeout", Duration, Some("\"30s\""), "Time for open requests to finish at a shutdown."),
    setting("server.workers", Number(1, 1_024), None, "Number of worker threads; default: one per core."),
    setting("proxies.trusted", Networks, Some("[]"), "Proxies whose client address header is trusted: addresses and networks such as [\"10.0.0.0/8\"]."),
    setting("proxies.header", Words(&["x-forwarded-for", "none"]), Some("\"x-forwarded-for\""), "Header in which trusted proxies send the client address. The other headers are ignored."),
    setting("proxies.proxy_protocol", Networks, Some("[]"), "Proxies that begin connections with a PROXY protocol header, version 1 or 2. Connections from these proxies without the header are refused."),
    setting("overload.cached_slots", Number(1, 1_000_000), Some("1024"), "Maximum concurrent requests for stale cached documents; more are queued, then refused with 503. Fresh ones need no slot."),
    setting("overload.waiting_slots", Number(1, 1_000_000), Some("16384"), "Maximum concurrent requests that wait for the backend or the ledger; more are queued, then refused with 503."),
    setting("overload.queue_length", Number(0, 1_000_000), Some("512"), "Maximum requests in the queue for overload.cached_slots, and in the one for overload.waiting_slots."),
    setting("overload.queue_timeout", Duration, Some("\"10ms\""), "Maximum time in the queue for overload.cached_slots or overload.waiting_slots."),
    setting("log.format", Words(&["text", "json"]), Some("\"text\""), "Format of the access log and the event log."),
    setting("log.access", Flag, Some("true"), "Write the access log to standard output: one line per failed, slow or sampled request."),
    setting("log.slow_threshold", Duration, Some("\"1s\""), "Duration from which a request is slow, and written to the access log."),
    setting("log.sample_one_in", Number(0, 1_000_000), Some("100"), "Write one in N successful, fast requests to the access log; 0 writes none."),
    setting("log.level", Text, Some("\"info\""), "Level of the event log: error, warn, info, debug, trace, or a filter."),
    setting("traces.endpoint", Text, None, "URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; default: no spans are recorded."),
    setting("traces.sample_one_in", Number(0, 1_000_000), Some("100"), "Record one in N requests without a traceparent header; 0 records none of them. Requests that the caller has sampled are recorded, at most 100 per second."),
    setting("mail.server", Text, None, "Host and port of the SMTP server that accepts mail for all recipients, such as mail.example.org:587; default: no mail is sent."),
    setting("mail.directory", Path, None, "Directory to write mail to, one file per message, instead of sending it. For testing: requires a loopback `listen` and no mail.server."),
    setting("mail.tls", Words(&["starttls", "implicit", "none"]), Some("\"starttls\""), "TLS on the connection to the mail server: begun with STARTTLS, from the beginning (usually port 465), or none, which is only possible on loopback."),
    setting("mail.ca_file", Path, None, "Certificates of the authorities that may issue the mail server's certificate, in PEM; default: the public authorities."),
    setting("mail.username", Text, None, "User name for the mail server."),
    setting("mail.password", Secret, None, "Password of mail.username."),
    setting("mail.password_file", Path, None, "File that contains the password of mail.username."),
    setting("mail.from", Text, None, "Sender of all mail, such as Example API <noreply@example.org>. Required with mail.server."),
    setting("mail.timeout", Duration, Some("\"30s\""), "Timeout for connecting to the mail server, and for each mail; at most 5m."),
];

impl Setting {
    pub(super) fn default_value(&self) -> Option<Value> {
        let table: toml::Table = toml::from_str(&format!("value = {}", self.default?)).ok()?;
        table.get("value").cloned()
    }
}

/// The setting with this path.
pub(super) fn setting_of(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

/// The environment variable of a setting.
pub(super) fn variable(path: &str) -> String {
    format!("SCOREGATE_{}", path.replace('.', "_").to_uppercase())
}

impl ValueKind {
    /// The expected value, for an error message.
    pub(super) fn remedy(self) -> String {
        match self {
            Self::Text | Self::Secret => "write a string in double quotes".into(),
            Self::Address => "write an address and a port, such as \"127.0.0.1:8080\"".into(),
            Self::Path => "write a path in double quotes".into(),
            Self::Flag => "write true or false".into(),
            Self::Number(least, most) => format!("write an integer from {least} to {most}"),
            Self::Duration => {
                "write a duration above zero, such as \"250ms\", \"10s\", \"5m\", \"1h\" or \"7d\""
                    .into()
            }
            Self::Networks => {
                "write a list of addresses and networks, such as [\"192.0.2.1\", \"10.0.0.0/8\"]".into()
            }
            Self::Size => "write a size, such as \"64KiB\", \"256MiB\" or \"1GiB\"".into(),
            Self::Texts => "write a list of strings, such as [\"one\", \"another\"]; in the environment, separate them by commas".into(),
            Self::Instant => "write a timestamp, such as \"2027-01-31T00:00:00Z\"".into(),
            Self::Words(words) => format!("write one of \"{}\"", words.join("\", \"")),
        }
    }
}
