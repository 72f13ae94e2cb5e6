//! Reads the state of a shared store for its metrics.

use crate::store::StoreError;

use super::Registrar;

impl Registrar {
    /// Sets the metrics of a shared store. If its state cannot be read, they keep their values. Called every few seconds.
    pub async fn measure_store(&self) -> Result<(), StoreError> {
        let metrics = self.instruments.shared_store();
        metrics.exchanges(self.store.exchange_counts());
        if let Some(status) = self.store.database_status().await? {
            metrics.status(&status);
        }
        Ok(())
    }
}
