//! The password of the database is changed while a gateway runs, and is wrong while a gateway starts.

use crate::program::write_secret;

use super::{mail::sql, without_database::ObservedGateway, *};

const SETTINGS: [&str; 1] = ["fsync=off"];

/// A site whose gateways need a password, and the file that contains it.
struct GuardedSite {
    _server: PostgresServer,
    /// The site for commands: the role that owns the tables needs no password.
    site: Site,
    gateway_url: String,
    directory: TempDir,
}

impl GuardedSite {
    fn new() -> Self {
        let mut server = PostgresServer::start(&SETTINGS);
        server.stop();
        let rules = "local all owner trust\nlocal all gateway scram-sha-256\n";
        std::fs::write(server.directory.path().join("data/pg_hba.conf"), rules).unwrap();
        server.restart(&SETTINGS);
        let url = server.url();
        let schema = new_schema();
        let gateway_url = url.replace("owner@", "gateway@");
        let site = Site { url, schema };
        sql(&site, "CREATE ROLE gateway LOGIN PASSWORD 'first'");
        run_with(
            &["store", "init", "--runtime-role", "gateway"],
            &site.environment(),
        )
        .with(0);
        let guarded = Self {
            _server: server,
            site,
            gateway_url,
            directory: TempDir::new().unwrap(),
        };
        guarded.write("first\n");
        guarded
    }

    fn write(&self, text: &str) {
        write_secret(&self.directory.path().join("password"), text);
    }

    fn start(&self, data_dir: TempDir) -> ObservedGateway {
        let file = self.directory.path().join("password");
        let own = [
            ("SCOREGATE_STORE_URL", &*self.gateway_url),
            ("SCOREGATE_STORE_PASSWORD_FILE", file.to_str().unwrap()),
        ];
        ObservedGateway::start_with(&[&self.site.environment()[..], &own].concat(), data_dir)
    }

    /// Gives the role another password, and closes all connections of gateways.
    fn change(&self, password: &str) {
        sql(
            &self.site,
            &format!("ALTER ROLE gateway PASSWORD '{password}'"),
        );
        self.disconnect();
    }

    fn disconnect(&self) {
        sql(
            &self.site,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gateway'",
        );
    }

    /// Checks that the gateway is connected: a new key reaches it and gets units there.
    fn is_connected(&self, gateway: &ObservedGateway) {
        let (_, key) = self.site.create("1000");
        gateway.gateway.reaches_within(&key, 200, 60);
    }
}

#[test]
fn a_changed_password_is_used_for_the_next_connection_without_a_restart() {
    needs!("postgresql");
    let guarded = GuardedSite::new();
    let gateway = guarded.start(TempDir::new().unwrap());
    guarded.is_connected(&gateway);
    guarded.write("second\n");
    guarded.change("second");
    guarded.is_connected(&gateway);
    // An empty file keeps the password in use.
    guarded.write("");
    guarded.disconnect();
    guarded.is_connected(&gateway);
    let rejected = "scoregate_files_rejected{setting=\"store.password\"}";
    until(|| gateway.metric(rejected) == "1");
    let output = gateway.gateway.program.stop().with(0);
    assert_eq!(
        output.err.matches("file rejected").count(),
        1,
        "{}",
        output.err
    );
    assert!(output.err.contains("store.password"), "{}", output.err);
}

#[test]
fn a_start_with_a_wrong_password_uses_the_copy_of_the_keys_until_the_file_is_corrected() {
    needs!("postgresql");
    let guarded = GuardedSite::new();
    let (_, key) = guarded.site.create("100000");
    let first = guarded.start(TempDir::new().unwrap());
    assert_eq!(first.gateway.status(&key), 200);
    first.copies(&Digest::of(&key).to_string());
    let SiteGateway {
        data_dir, program, ..
    } = first.gateway;
    program.stop().with(0);
    guarded.write("wrong\n");
    let gateway = guarded.start(data_dir);
    assert_eq!(gateway.metric("scoregate_store_local_copy"), "1");
    assert_ne!(
        gateway.gateway.status(&key),
        200,
        "the gateway has no units"
    );
    guarded.write("first\n");
    gateway.gateway.reaches_within(&key, 200, 60);
    assert_eq!(gateway.metric("scoregate_store_local_copy"), "0");
    gateway.gateway.program.stop().with(0);
}
