//! The objects that commands use.

use std::sync::Arc;

use crate::{
    registry::{OwnerAdministration, OwnerMail, Registrar},
    status::StatusMessages,
};

use super::fleet::FleetReports;

/// The objects that commands use, one for each kind of command.
#[expect(missing_docs, reason = "each field is documented at its type")]
pub struct Administration {
    pub registrar: Arc<Registrar>,
    pub owners: Arc<OwnerAdministration>,
    pub mail: OwnerMail,
    pub reports: FleetReports,
    pub messages: StatusMessages,
}
