//! Reads `freshness.*` for all endpoints, and tables for individual endpoints such as `[freshness.alerts]`.

use crate::{
    cache::StaleWindows,
    documents::{Lifetime, Retention},
    mcp::tool_result,
};
use scoregate_base::{
    plans::FieldSets,
    routes::{Endpoint, EndpointTable},
};

use crate::config::{
    ValueKind, config_reader::ConfigReader, table_reader::TableReader, words::duration,
};

use super::site;

pub(in crate::config) fn retention(
    reading: &mut ConfigReader<'_>,
    endpoints: &EndpointTable,
) -> Retention {
    let windows = StaleWindows {
        while_revalidate: reading.get("freshness.stale_while_revalidate"),
        if_error: reading.get("freshness.stale_if_error"),
    };
    windows_in_order(reading, "freshness", windows);
    let lifetime = Lifetime { windows, ttl: None };
    let written = reading.written();
    let own = endpoints
        .stored()
        .filter(|endpoint| written.is_set(&table_of(endpoint)));
    Retention {
        lifetime,
        by_endpoint: own
            .map(|endpoint| (endpoint.route, lifetime_of(reading, endpoint, lifetime)))
            .collect(),
        cadence: reading.get("freshness.refresh_interval"),
        fetch_timeout: reading.get("freshness.max_wait"),
        probing: reading.get("freshness.probe"),
        polls_when_idle: reading.get("site.status_page"),
        endpoints: endpoints.clone(),
        license: site::license(reading),
        field_sets: FieldSets::default(),
        tool_result: reading.get::<bool>("mcp.enabled").then_some(tool_result),
    }
}

/// The lifetime for an endpoint. It is read from the endpoint's table, with the settings for all endpoints as defaults.
fn lifetime_of(reading: &mut ConfigReader<'_>, endpoint: &Endpoint, of_all: Lifetime) -> Lifetime {
    let table = table_of(endpoint);
    let mut of_endpoint = TableReader::at(reading, table.as_str());
    let mut own = |name: &str| {
        of_endpoint.optional(name, ValueKind::Duration.remedy(), |value| {
            duration(value.as_str()?)
        })
    };
    let windows = StaleWindows {
        while_revalidate: own("stale_while_revalidate").unwrap_or(of_all.windows.while_revalidate),
        if_error: own("stale_if_error").unwrap_or(of_all.windows.if_error),
    };
    let ttl = own("ttl");
    windows_in_order(reading, &table, windows);
    Lifetime { windows, ttl }
}

fn windows_in_order(reading: &mut ConfigReader<'_>, table: &str, windows: StaleWindows) {
    if windows.if_error < windows.while_revalidate {
        let path = format!("{table}.stale_if_error");
        reading.reject(
            &path,
            format!("write at least the value of {table}.stale_while_revalidate"),
        );
    }
}

fn table_of(endpoint: &Endpoint) -> String {
    format!("freshness.{}", endpoint.name)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::config::tests::accepted;
    use scoregate_base::routes::Route;

    #[test]
    fn an_endpoint_s_table_overrides_the_settings_for_all() {
        let retention = accepted(
            "[freshness]\nstale_if_error = \"2d\"\n[freshness.alerts]\nttl = \"5m\"\nstale_while_revalidate = \"1h\"",
        )
        .retention;
        let all = retention.lifetime(Route::Models);
        let alerts = retention.lifetime(Route::Alerts);
        let day = Duration::from_hours(24);
        assert_eq!(
            (all.ttl, all.windows.while_revalidate, all.windows.if_error),
            (None, day, 2 * day)
        );
        assert_eq!(alerts.ttl, Some(Duration::from_mins(5)));
        assert_eq!(
            (alerts.windows.while_revalidate, alerts.windows.if_error),
            (Duration::from_hours(1), 2 * day)
        );
    }
}
