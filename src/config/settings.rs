//! The table of settings: path, kind, default, meaning. The sample configuration is generated from it. Paths that are
//! not in the table are rejected. Each setting has an environment variable: `upstream.timeout` is
//! `SCOREGATE_UPSTREAM_TIMEOUT`.

use toml::Value;

/// The suffix of a setting that names the file containing a secret.
pub const IN_A_FILE: &str = "_file";

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
    /// A list of addresses and networks: `["192.0.2.1", "10.0.0.0/8"]`. In the environment, they are separated by
    /// commas.
    Networks,
    /// A list of strings.
    Texts,
    /// A timestamp.
    Instant,
    /// A string that is never printed.
    Secret,
}

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// The path of the setting in the file.
    pub path: &'static str,
    /// The type of the setting.
    pub kind: ValueKind,
    /// The default value as TOML. `None` if there is no default.
    pub default: Option<&'static str>,
    /// Whether a change takes effect only at the next start.
    pub needs_restart: bool,
    /// The help text of the setting.
    pub meaning: &'static str,
}

/// Declares the table. Each row says when a change takes effect, and has the path, the kind, an optional default and
/// the meaning.
macro_rules! settings {
    ($(#[$about:meta])* $($when:ident $path:literal $kind:ident $(($($of:tt)*))? $(= $default:literal)?, $meaning:literal;)+) => {
        $(#[$about])*
        pub static SETTINGS: &[Setting] = &[$(Setting {
            path: $path,
            kind: ValueKind::$kind $(($($of)*))?,
            default: settings!(@default $($default)?),
            needs_restart: settings!(@$when),
            meaning: $meaning,
        }),+];
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
    (@restart) => { true };
    (@reload) => { false };
}

settings! {
    /// All settings except those in named tables (`tables`).
    restart "listen" Address = "\"127.0.0.1:8080\"", "Address and port of the public port.";
    restart "data_dir" Path = "\"scoregate-data\"", "Directory for all state: keys, quotas, stored documents, and the Unix socket.";
    restart "store.url" Text, "URL of a PostgreSQL database for keys and quotas that several gateways share, such as postgresql://gateway@db1:5432,db2:5432/scoregate; default: a file in the data directory. With several hosts, the first writable host is used.";
    restart "store.listen_url" Text, "URL of the database for change notifications, if store.url points to a pooler; default: store.url.";
    restart "store.password" Secret, "Password of the database user.";
    restart "store.password_file" Path, "File that contains the password of the database user.";
    restart "store.ca_file" Path, "Certificates of the authorities that may issue the database's certificate, in PEM. This setting enables TLS, which is required for a database on another machine.";
    restart "store.client_certificate" Path, "Client certificate for the database, in PEM.";
    restart "store.client_key" Path, "Private key of store.client_certificate, in PEM.";
    restart "store.plain_text" Flag = "false", "Allow connections without TLS to a database on another machine. Use it only on a private network.";
    restart "store.gateways" Number(1, 1_000) = "3", "Maximum number of gateways that use the database. While the database is unreachable, each uses an equal part of every minute limit, and of the grace of paid tiers.";
    restart "store.node_name" Text, "Name of this gateway in `scoregate nodes`; default: the host name.";
    restart "store.schema" Text = "\"scoregate\"", "Schema of the tables in the database.";
    restart "store.start_timeout" Duration = "\"10s\"", "Time for which the gateway tries to reach the database at startup. After that, it uses the local copy of the keys, or fails if there is none. Keep this below the start timeout of the service manager.";
    restart "store.timeout" Duration = "\"2s\"", "Timeout for connecting to the database, for each transaction, and for requests that wait for a transaction.";
    restart "upstream" Words(&["built-in"]), "\"built-in\" for the built-in backend; for a backend over HTTP, write a table [upstream] instead.";
    restart "admin.listen" Address = "\"127.0.0.1:9464\"", "Address and port of the side port. Keep it on loopback or behind a firewall.";
    reload "admin.hosts" Texts = "[]", "Host names that the side port accepts, such as [\"scoregate-side\"]; IP addresses and localhost are always accepted. In the environment, separated by commas.";
    reload "admin.token" Secret, "Bearer token for requests to the side port over TCP, except metrics and health; at least 16 characters.";
    reload "admin.token_file" Path, "File that contains the bearer token of the side port.";
    reload "service.name" Text = "\"scoregate\"", "Name of the service in its documents and in the realm of a 401.";
    restart "service.license" Text, "Attribution notice in every response with data; default: a sentence that names service.name and service.base_url, and requires a link.";
    reload "service.base_url" Text, "Public base URL of the service, for the examples in the documentation and for absolute links, such as in /.well-known/api-catalog.";
    reload "service.deprecated_at" Instant, "Time from which the API is deprecated; sent in every response (RFC 9745).";
    reload "service.sunset_at" Instant, "Time at which the API is switched off; sent in every response (RFC 8594).";
    reload "service.deprecation_link" Text, "URL of the deprecation notice; sent in every response.";
    restart "site.status_page" Flag = "false", "Serve a status page at /status, with an Atom feed. The backend is then polled for refreshes even without client requests.";
    reload "site.contact_name" Text, "Name of the contact in the API description.";
    reload "site.contact_email" Text, "Email address of the contact, in the API description and on /docs.";
    reload "site.contact_url" Text, "URL of the contact, in the API description and on /docs.";
    reload "site.terms_url" Text, "URL of the terms of service; default: the section on terms in /docs.";
    reload "site.docs_url" Text, "URL of further documentation, linked from the API description and /docs.";
    reload "site.security_contact" Text, "URL for vulnerability reports; it begins with mailto: or https://. Enables /.well-known/security.txt (RFC 9116).";
    reload "site.security_policy_url" Text, "URL of the policy for vulnerability reports; it begins with https://.";
    restart "site.sign_up" Flag = "false", "Let people sign up by email and manage their applications and keys at /account. Requires service.base_url, TLS and mail.server; on loopback it requires only mail.server or mail.directory.";
    reload "site.tier" Text, "Tier of applications that people create; default: the first tier.";
    reload "site.applications_per_account" Number(1, 1_000) = "1", "Maximum number of applications of an account.";
    reload "site.upgrade_url" Text, "URL where higher tiers are available; the account pages and refusals with 403 and 429 link to it.";
    reload "site.plans" Texts = "[]", "Pages where tiers are bought, such as [\"pro=https://example.org/pro\"]; /docs, the account pages, and refusals with 403 and 429 link to them. In the environment, separated by commas.";
    reload "site.terms" Texts, "Terms of use as a list of strings; /docs lists them, and people accept them when they sign up. Default: the four terms of the data API. In the environment, separated by commas.";
    reload "site.terms_version" Text = "\"1\"", "Version of the terms of use. It is recorded with the acceptance. After a change, people must accept the terms again at their next sign-in.";
    reload "site.allowed_mail_domains" Texts = "[]", "Mail domains that can sign up and sign in, with their subdomains; default: all. In the environment, separated by commas.";
    reload "site.denied_mail_domains" Texts = "[]", "Mail domains that cannot sign up or sign in, with their subdomains. In the environment, separated by commas.";
    reload "site.sign_in_links_per_hour" Number(1, 1_000_000) = "60", "Maximum number of email links that one client address can request in an hour; an IPv6 /64 counts as one address. The limit is twice as high for an IPv6 /56 as a whole, and four times as high for an IPv6 /48 or an IPv4 /24.";
    reload "site.max_sign_in_links_per_minute" Number(1, 1_000_000) = "120", "Maximum number of email links that all client addresses together can request in a minute; further requests get 503. A third of it is reserved for networks that have used little of site.sign_in_links_per_hour.";
    reload "site.accounts_per_day" Number(1, 1_000_000) = "10", "Maximum number of new accounts that one client address can create in a day with email addresses at the same domain. Larger networks can create more, as with site.sign_in_links_per_hour.";
    restart "site.webhooks" Flag = "false", "Let owners add webhooks, which receive their notices as signed messages over HTTPS. Gateways then connect to hosts chosen by owners, at public addresses on ports 443 and 8443.";
    reload "cors.origins" Texts = "[]", "Origins whose pages may read responses in a browser, such as [\"https://dash.example.org\"]; [\"*\"] allows all. In the environment, separated by commas.";
    reload "cors.max_age" Duration = "\"1h\"", "Time for which browsers may cache a preflight response.";
    restart "keys.prefix" Text = "\"sg_live\"", "Prefix of API keys.";
    restart "keys.accept_imported" Flag = "false", "Accept keys of other formats that were imported by their SHA-256.";
    restart "keys.max_age" Duration, "Maximum age of the keys while the database is unreachable. Once they are older, all requests are refused with 503; default: unlimited.";
    restart "leaks.public_keys" Text, "Enables the endpoint /secret-scanning for reports of leaked keys: file or URL of the public keys that verify reports, in the format of https://api.github.com/meta/public_keys/secret_scanning. A file is read again every 10 s, a URL every hour. Default: disabled.";
    restart "leaks.action" Words(&["revoke", "expire"]) = "\"revoke\"", "Action on a leaked key: revoke it, or let it expire after an hour.";
    restart "operator.webhook" Text, "URL that receives signed messages about new accounts and, once a day, about suspects. It begins with https:// or http://, and its host may be private. Default: no messages are sent.";
    restart "operator.webhook_secret" Secret, "Secret that signs the messages to operator.webhook (Standard Webhooks): whsec_ and at least 24 bytes in Base64.";
    restart "operator.webhook_secret_file" Path, "File that contains the secret that signs the messages to operator.webhook.";
    restart "mcp.enabled" Flag = "false", "Serve the endpoints as tools for language models at /mcp (Model Context Protocol). A call needs a key and costs as much as a request.";
    reload "mcp.registry_auth" Text, "Content of /.well-known/mcp-registry-auth, with which the MCP registry verifies this domain, such as \"v=MCPv1; k=ed25519; p=…\"; default: no such page.";
    restart "suspects.days" Number(1, 40) = "3", "Minimum number of days on which a rule must fire before `scoregate suspects` lists the application.";
    restart "suspects.hour_percent" Number(1, 100) = "40", "Minimum percentage of the models that an application must request in an hour to count as a mirror in that hour.";
    restart "suspects.hours" Number(1, 24) = "2", "Minimum number of hours in a day in which an application must request suspects.hour_percent of the models to count as a mirror.";
    restart "suspects.day_percent" Number(1, 100) = "80", "Minimum percentage of the models that an application must request in a day to count as a systematic mirror.";
    restart "suspects.group_percent" Number(1, 100) = "70", "Minimum percentage of the models that applications with the same apparent owner must request together in an hour to be listed.";
    restart "suspects.networks" Number(1, 192) = "8", "Minimum number of networks (/24 or /48) from which a key is used in an hour for the key to count as shared.";
    restart "suspects.products" Number(1, 192) = "8", "Minimum number of user-agent products seen with a key in the same hour for the key to count as shared.";
    restart "suspects.documents" Number(1, 4_294_967_295) = "1000", "Minimum number of documents received in a day for an application to count as an inefficient poller.";
    restart "suspects.repeated_percent" Number(1, 100) = "98", "Minimum percentage of a day's documents that must repeat a document from the same hour for an application to count as an inefficient poller.";
    reload "guard.per_minute" Number(1, 100_000_000) = "60", "Maximum number of refused requests per minute, for each application or client address.";
    restart "upstream.url" Text, "Base URL of the backend, such as http://127.0.0.1:4000/api/v1.";
    restart "upstream.urls" Texts = "[]", "Base URLs of a backend with several addresses, instead of upstream.url. Each is used while the URLs before it fail. In the environment, separated by commas.";
    restart "upstream.credential" Secret, "Credential sent to the backend.";
    restart "upstream.credential_header" Text = "\"Authorization\"", "Header that contains upstream.credential. In `Authorization`, the credential follows the scheme `Bearer`; other headers contain only the credential.";
    restart "upstream.credential_file" Path, "File that contains the credential sent to the backend.";
    restart "upstream.ca_file" Path, "Certificates of the authorities that may issue the backend's certificate, in PEM; default: the public authorities.";
    restart "upstream.client_certificate" Path, "Client certificate for the backend, in PEM.";
    restart "upstream.client_key" Path, "Private key of upstream.client_certificate, in PEM.";
    restart "upstream.server_name" Text, "Name in the backend's certificate; default: the host of upstream.url.";
    restart "upstream.min_tls_version" Words(&["1.2", "1.3"]) = "\"1.2\"", "Oldest TLS version accepted from the backend.";
    restart "upstream.connect_timeout" Duration = "\"2s\"", "Timeout for connecting to the backend.";
    restart "upstream.first_byte_timeout" Duration = "\"15s\"", "Timeout for the first byte of a backend response.";
    restart "upstream.timeout" Duration = "\"20s\"", "Timeout for a whole backend response.";
    restart "upstream.max_concurrent_requests" Number(1, 1_024) = "2", "Maximum number of concurrent requests to the backend. Further requests are queued, and paid tiers go first.";
    restart "upstream.max_body" Size = "\"8MiB\"", "Maximum size of a backend response.";
    restart "upstream.idle_timeout" Duration = "\"20s\"", "Time after which an idle connection to the backend is closed. Set it below the idle timeout of the backend.";
    restart "built_in.archive" Path, "Archive of benchmark runs for the built-in backend; default: runs.db in the data directory. `scoregate scoring import` adds runs.";
    restart "freshness.refresh_interval" Duration = "\"1h\"", "Refresh interval of the backend, unless its responses state one.";
    restart "freshness.stale_while_revalidate" Duration = "\"1d\"", "Time for which a stale document is served immediately while it is refreshed, counted from when the refresh was due.";
    restart "freshness.stale_if_error" Duration = "\"7d\"", "Time for which a stale document is served if the backend fails, counted from when the refresh was due.";
    restart "freshness.probe" Flag = "true", "Poll the backend for refreshes without client requests, and refresh documents in use.";
    restart "freshness.max_wait" Duration = "\"20s\"", "Maximum time that a request waits for a fetch.";
    restart "cache.max_bytes" Size = "\"256MiB\"", "Maximum size of stored documents in memory.";
    restart "cache.disk_max_bytes" Size = "\"64MiB\"", "Maximum size of stored documents on disk, which are loaded at a restart.";
    reload "server.max_connections" Number(1, 1_000_000) = "10000", "Maximum number of connections on the public port.";
    reload "server.max_connections_per_address" Number(1, 1_000_000) = "1024", "Maximum number of connections per client address; an IPv6 /64 counts as one address.";
    reload "server.max_connections_per_application" Number(1, 1_000_000) = "256", "Maximum number of connections per application: this number or its requests-per-minute limit, whichever is larger. Further connections are closed after a response. Connections of trusted proxies are not counted.";
    reload "server.head_timeout" Duration = "\"9s\"", "Timeout for the first request of a connection, and for each request head.";
    reload "server.idle_timeout" Duration = "\"60s\"", "Time after which an idle client connection is closed.";
    reload "server.request_timeout" Duration = "\"60s\"", "Timeout from a request head to the last byte of its response.";
    reload "server.write_timeout" Duration = "\"20s\"", "Time in which a client has to read 8 KiB of a pending response; slower clients are disconnected.";
    reload "server.max_connection_age" Duration = "\"1h\"", "Maximum connection age; the connection is closed after its next response.";
    reload "server.plain_http" Flag = "false", "Allow HTTP without TLS on addresses other than loopback. Use it only behind a TLS proxy on a private network.";
    reload "server.shutdown_delay" Duration, "Time for which /readyz returns 503 after a stop signal while requests are still served, so that a load balancer can select other servers; default: none.";
    reload "server.shutdown_timeout" Duration = "\"30s\"", "Time for open requests to finish at a shutdown.";
    restart "server.workers" Number(1, 1_024), "Number of worker threads; default: one per core.";
    reload "proxies.trusted" Networks = "[]", "Proxies whose client address header is trusted: addresses and networks such as [\"10.0.0.0/8\"].";
    reload "proxies.header" Words(&["x-forwarded-for", "none"]) = "\"x-forwarded-for\"", "Header in which trusted proxies send the client address. Other headers are ignored.";
    reload "proxies.proxy_protocol" Networks = "[]", "Proxies that begin connections with a PROXY protocol header, version 1 or 2. Connections from these proxies without the header are refused.";
    reload "overload.cached_slots" Number(1, 1_000_000) = "1024", "Maximum number of concurrent requests for stale documents. Further requests are queued, then refused with 503. Requests for fresh documents need no slot.";
    reload "overload.waiting_slots" Number(1, 1_000_000) = "16384", "Maximum number of concurrent requests that wait for the backend or the ledger. Further requests are queued, then refused with 503.";
    reload "overload.queue_length" Number(0, 1_000_000) = "512", "Maximum number of requests in each of the queues for overload.cached_slots and overload.waiting_slots.";
    reload "overload.queue_timeout" Duration = "\"10ms\"", "Maximum time that a request waits in the queue for overload.cached_slots or overload.waiting_slots.";
    restart "log.format" Words(&["text", "json"]) = "\"text\"", "Format of the access log and the event log.";
    restart "log.access" Flag = "true", "Write the access log to standard output: one line per failed, slow or sampled request.";
    reload "log.slow_threshold" Duration = "\"1s\"", "Requests that take at least this long count as slow. Slow requests are written to the access log.";
    reload "log.sample_one_in" Number(0, 1_000_000) = "100", "Write one in N successful, fast requests to the access log; 0 writes none.";
    reload "log.level" Text = "\"info\"", "Level of the event log: error, warn, info, debug, trace, or a filter.";
    restart "traces.endpoint" Text, "URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces; default: no spans are recorded.";
    restart "traces.sample_one_in" Number(0, 1_000_000) = "100", "Record one in N requests without a traceparent header; 0 records none. Requests that the caller has sampled are also recorded, at most 100 per second.";
    restart "mail.server" Text, "Host and port of the SMTP server that accepts mail for all recipients, such as mail.example.org:587; default: no mail is sent.";
    restart "mail.directory" Path, "Directory to write mail to, one file per message, instead of sending it. For testing: requires a loopback `listen` and no mail.server.";
    restart "mail.tls" Words(&["starttls", "implicit", "none"]) = "\"starttls\"", "TLS on the connection to the mail server: starttls (required), implicit (TLS from the beginning, usually on port 465), or none (only on loopback).";
    restart "mail.ca_file" Path, "Certificates of the authorities that may issue the mail server's certificate, in PEM; default: the public authorities.";
    restart "mail.username" Text, "User name for the mail server.";
    restart "mail.password" Secret, "Password of mail.username.";
    restart "mail.password_file" Path, "File that contains the password of mail.username.";
    restart "mail.from" Text, "Sender of all mail, such as Example API <noreply@example.org>. Required with mail.server.";
    restart "mail.timeout" Duration = "\"30s\"", "Timeout for connecting to the mail server, and for each message; at most 5m.";
}

impl Setting {
    pub(super) fn default_value(&self) -> Option<Value> {
        let table: toml::Table = toml::from_str(&format!("value = {}", self.default?)).ok()?;
        table.get("value").cloned()
    }
}

/// The setting with this path.
pub fn setting_of(path: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.path == path)
}

/// The environment variable of a setting.
pub fn variable(path: &str) -> String {
    format!("SCOREGATE_{}", path.replace('.', "_").to_uppercase())
}

impl ValueKind {
    /// The remedy for an invalid value.
    pub(super) fn remedy_for(self, value: &Value) -> String {
        if value.is_str() && matches!(self, Self::Text | Self::Path) {
            return "write a non-empty string on one line".into();
        }
        self.remedy()
    }

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
            Self::Texts => "write a list of strings, such as [\"one\", \"another\"]; in the environment, separate them with commas".into(),
            Self::Instant => "write a timestamp, such as \"2027-01-31T00:00:00Z\"".into(),
            Self::Words(words) => format!("write one of \"{}\"", words.join("\", \"")),
        }
    }
}
