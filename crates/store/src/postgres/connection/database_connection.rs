//! The configuration of the database, and a connection to it.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_postgres::{AsyncMessage, Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::{
    StoreError, StoreResult, TransferError,
    postgres::connection::hosts::HostFault,
    statements::{Done, EngineFeatures, Fault, SchemaClient, SchemaName},
};
use scoregate_base::secret::SecretSetting;

/// The server routine that warns about a commit that the synchronous standby did not confirm. Its text depends on the
/// server's language.
const UNREPLICATED: &str = "SyncRepWaitForLSN";

const LISTEN: &str = "LISTEN {schema}_changes; LISTEN {schema}_documents";

/// Receives the channel of each notification.
pub type NotificationSink = Arc<dyn Fn(&str) + Send + Sync>;

/// The configuration for connecting to the database.
#[derive(Clone)]
pub struct DatabaseConfig {
    /// The configuration for each host, with database and user.
    pub servers: Vec<Config>,
    /// The configuration of each host for notifications of changes, which a pooler does not forward.
    pub listen_servers: Vec<Config>,
    /// The password of the user, read again for each connection.
    pub password: Option<SecretSetting>,
    /// The TLS configuration; `None` for plaintext.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// The schema of the tables.
    pub schema: SchemaName,
    /// Deadline for connecting and for each transaction.
    pub timeout: Duration,
}

/// An open connection. Dropping it closes the socket.
pub struct DatabaseConnection {
    /// Dropped first, which closes the socket.
    driver: AbortOnDropHandle<()>,
    pub(crate) client: Client,
    pub(crate) features: EngineFeatures,
    /// Set when the connection must not be used again.
    is_unusable: Arc<AtomicBool>,
}

impl DatabaseConnection {
    /// A connection that listens, and passes each notification to `notified`.
    pub(crate) async fn listening(
        config: &DatabaseConfig,
        server: Config,
        notified: &NotificationSink,
    ) -> Result<Self, HostFault> {
        let connection = Self::open(config, server, Some(Arc::clone(notified))).await?;
        connection
            .client
            .batch_execute(&config.schema.statement(LISTEN))
            .await?;
        Ok(connection)
    }

    /// Waits until the connection is closed.
    pub(crate) async fn closed(mut self) {
        // The driver ends with the connection and is not aborted before that.
        drop((&mut self.driver).await);
    }

    /// Connects to this server, with TLS if there is a configuration for it.
    pub(crate) async fn open(
        config: &DatabaseConfig,
        mut server: Config,
        notified: Option<NotificationSink>,
    ) -> Result<Self, HostFault> {
        if let Some(password) = &config.password {
            server.password(password.latest().await.expose());
        }
        let mut opened = if let Some(tls) = config.tls.as_deref() {
            let (client, connection) = server.connect(MakeRustlsConnect::new(tls.clone())).await?;
            Self::drive(client, connection, notified)
        } else {
            let (client, connection) = server.connect(NoTls).await?;
            Self::drive(client, connection, notified)
        };
        opened.features = match EngineFeatures::read(&opened.client).await? {
            Ok(features) => features,
            Err(missing) => {
                return Err(HostFault::Unusable(format!(
                    "the server has no {missing}, or this role may not use them: use PostgreSQL, or grant the rights"
                )));
            }
        };
        Ok(opened)
    }

    fn drive<S, T>(
        client: Client,
        mut connection: tokio_postgres::Connection<S, T>,
        notified: Option<NotificationSink>,
    ) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let is_unusable = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_unusable);
        let tasks = TaskTracker::new();
        let driver = tasks.spawn(async move {
            while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    // The next reply would report success. Without that reply, the outcome is unknown, which is
                    // correct.
                    Ok(AsyncMessage::Notice(notice)) if notice.routine() == Some(UNREPLICATED) => {
                        tracing::warn!("a commit was not confirmed by the synchronous standby");
                        seen.store(true, Ordering::Release);
                        return;
                    }
                    Ok(AsyncMessage::Notification(notification)) => {
                        if let Some(notified) = &notified {
                            notified(notification.channel());
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "database connection failed");
                        return;
                    }
                }
            }
        });
        let driver = AbortOnDropHandle::new(driver);
        Self {
            driver,
            client,
            features: EngineFeatures::default(),
            is_unusable,
        }
    }

    /// The tables of a schema.
    pub(crate) fn tables<'c>(&'c self, schema: &'c SchemaName) -> SchemaClient<'c> {
        SchemaClient {
            client: &self.client,
            schema,
            features: self.features,
        }
    }

    /// The result of work on the connection. The outer error means that a statement failed. If a record is unreadable,
    /// the tables may have been replaced. The check of the next connection detects that.
    pub(crate) fn settled<T>(
        &self,
        done: Done<T>,
    ) -> Result<StoreResult<T>, tokio_postgres::Error> {
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(Fault::Database(error)) => Err(error),
            Err(Fault::Refused(refusal)) => Ok(Err(refusal)),
            Err(Fault::Disk(error)) => Ok(Err(TransferError::File(error).into())),
            Err(fault @ (Fault::Record(_) | Fault::File(_))) => {
                self.discard();
                let path = "the database".into();
                let reason = fault.to_string();
                Ok(Err(StoreError::Damaged { path, reason }))
            }
        }
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.client.is_closed() && !self.is_unusable.load(Ordering::Acquire)
    }

    /// Closes the connection after the work in progress has ended.
    pub(crate) fn discard(&self) {
        self.is_unusable.store(true, Ordering::Release);
    }
}
