//! The use of an application at present, for its pages.

use crate::accounts::Registrar;
use crate::pages::account::CurrentUsage;
use crate::store::StoredApplication;

/// The use of an application; `None` if its tier is not configured.
pub(super) fn current_usage(registrar: &Registrar, application: &StoredApplication) -> Option<CurrentUsage> {
    let current = registrar.current_use(application)?;
    Some(CurrentUsage {
        day_used: current.day_used,
        day_limit: current.day_limit,
        day_ends_at: current.day_resets_at,
        minute_used: current.minute_limit.saturating_sub(current.minute_remaining),
        minute_limit: current.minute_limit,
    })
}
