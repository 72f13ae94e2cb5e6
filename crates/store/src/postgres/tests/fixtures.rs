//! Schemas on the shared server and on separate servers, stores in them, and operations of gateways on a store.

use super::*;

/// A new schema on a server, without tables.
pub fn config_on(server: &PostgresServer) -> DatabaseConfig {
    DatabaseConfig {
        servers: vec![server.url().parse().unwrap()],
        listen_servers: vec![server.url().parse().unwrap()],
        password: None,
        tls: None,
        schema: SchemaName::parse(&new_schema()).unwrap(),
        timeout: Duration::from_secs(20),
    }
}

/// A new schema on the shared server, without tables.
pub fn config() -> DatabaseConfig {
    config_on(shared_server())
}

pub async fn create_tables(config: DatabaseConfig) -> TablesChange {
    command(&config)
        .change_tables(TablesWork::Create, None)
        .await
        .unwrap()
}

/// A new schema on the shared server, with tables.
pub async fn prepared() -> DatabaseConfig {
    prepared_on(shared_server()).await
}

/// A new schema on a server, with tables.
pub async fn prepared_on(server: &PostgresServer) -> DatabaseConfig {
    let config = config_on(server);
    create_tables(config.clone()).await;
    config
}

/// Commands on a database.
pub fn command(config: &DatabaseConfig) -> DatabaseCommand {
    DatabaseCommand {
        config: config.clone(),
        clock: Clock::system(),
    }
}

impl Store {
    pub(super) fn engine(&self) -> &DatabaseEngine {
        self.database().unwrap()
    }

    /// With `ignores_clock`, only the day of each exchange is used.
    pub(crate) async fn open_with(
        config: DatabaseConfig,
        clock: Clock,
        ignores_clock: bool,
    ) -> Result<Self, StoreError> {
        let store = Self::connecting(config, clock, SeenTimelines::default(), ignores_clock);
        store.check().await?;
        Ok(store)
    }
}

/// A store in which the tests set the day.
pub async fn open(config: &DatabaseConfig) -> Store {
    Store::open_with(config.clone(), Clock::system(), true)
        .await
        .unwrap()
}

/// A store in which the clock sets the day.
pub async fn open_by_clock(config: &DatabaseConfig) -> Store {
    Store::open_with(config.clone(), Clock::system(), false)
        .await
        .unwrap()
}

/// The error of a failed attempt to open a store.
pub async fn refusal(config: &DatabaseConfig) -> String {
    let opened = Store::open_with(config.clone(), Clock::system(), false).await;
    opened.err().unwrap().to_string()
}

/// A store with new tables, in which the tests set the day.
pub async fn fresh() -> Store {
    open(&prepared().await).await
}

/// The store of another gateway.
pub async fn another(store: &Store) -> Store {
    open(&store.engine().config).await
}

/// The timelines that are stored in a data directory.
pub fn kept_in(directory: &Path) -> SeenTimelines {
    SeenTimelines::kept_in(Arc::new(LocalFile::open(directory).unwrap())).unwrap()
}

/// A store that uses this data directory and has not been opened yet.
pub fn unopened(config: &DatabaseConfig, directory: &Path) -> Store {
    Store::in_database(config.clone(), Clock::system(), kept_in(directory))
}

pub async fn inspected(config: &DatabaseConfig) -> DatabaseReport {
    command(config).inspect().await.unwrap()
}

/// Executes statements on a separate connection.
pub async fn prepare(config: &DatabaseConfig, statements: &str) {
    let statements = config.schema.statement(statements);
    let link = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
    let work = async |client: SchemaClient<'_>| client.batch_execute(&statements).await;
    link.run("prepare a test", work).await.unwrap();
}

/// Executes statements on the connection of a store.
pub async fn execute(store: &Store, statements: &str) {
    attempt(store, statements).await.unwrap();
}

/// Executes statements that may be refused.
pub async fn attempt(store: &Store, statements: &str) -> StoreResult<()> {
    let statements = store.engine().config.schema.statement(statements);
    let work = async |client: SchemaClient<'_>| client.batch_execute(&statements).await;
    store.engine().connection.run("test", work).await
}

/// The rows of a query that returns a string and a number.
pub async fn rows(store: &Store, query: &str) -> Vec<(String, i64)> {
    let query = store.engine().config.schema.statement(query);
    let work = async |client: SchemaClient<'_>| client.query(&query, &[]).await;
    let rows = store.engine().connection.run("test", work).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Creates the tables of a schema, and a runtime role for them.
pub async fn runtime_role(config: &DatabaseConfig) -> DatabaseConfig {
    let role = format!("runtime_of_{}", config.schema.statement("{schema}"));
    prepare(config, &format!("CREATE ROLE {role} LOGIN")).await;
    let granted = RoleName::parse(&role).ok();
    let work = TablesWork::Create;
    command(config).change_tables(work, granted).await.unwrap();
    let mut runtime = config.clone();
    runtime.servers[0].user(&role);
    runtime
}

/// A node's exchange with a report about one application.
pub fn report(
    application: ApplicationId,
    node: u64,
    known: NodeTotals,
    granted: u32,
) -> LedgerExchange {
    let totals = NodeReport {
        known,
        granted,
        quota: 500,
    };
    let day = NOON.day();
    LedgerExchange {
        node,
        today: day,
        reports: vec![LedgerReport::of_units(application, day, totals)],
    }
}

/// An exchange of the first node, which has no units of the application yet.
pub fn asks(application: ApplicationId, units: u32) -> LedgerExchange {
    report(application, 1, NodeTotals::default(), units)
}

/// The same exchange, but for another day and with another current day on the gateway's clock.
pub fn on_day(exchange: LedgerExchange, today: Day, day: Day) -> LedgerExchange {
    let mut exchange = exchange;
    exchange.today = today;
    exchange.reports[0].day = day;
    exchange
}

/// The units granted to the node and to all nodes.
pub async fn granted(store: &Store, exchange: LedgerExchange) -> (u32, u64) {
    match store.exchange(exchange).await.unwrap().outcomes[..] {
        [ReportOutcome::Applied { node, granted, .. }] => (node.granted, granted),
        ref other => panic!("{other:?}"),
    }
}

/// The units granted to the first node today, according to the system clock.
pub async fn granted_by_clock(store: &Store, id: ApplicationId) -> u32 {
    let today = Clock::system().now().wall.day();
    granted(store, on_day(asks(id, 100), today, today)).await.0
}

/// Opens a day with units for a new application, and returns the application.
pub async fn open_day(store: &Store) -> ApplicationId {
    let id = created(store).await;
    assert_eq!(granted(store, asks(id, 5)).await, (5, 5));
    id
}
