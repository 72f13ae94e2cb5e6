//! Logs, metrics, traces, dashboards, and the status page.

mod access_log;
mod metric_cardinality;
mod metrics_scrape;
mod monitoring;
mod status_page;
mod trace_export;
mod traces;
