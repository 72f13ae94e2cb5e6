//! Requests by endpoint and outcome: totals of each gateway process, merged once a day is closed for reports. The rules are in
//! `store::requests`.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::usage_tables::last_day_before;
use crate::stored::stored;
use crate::usage::USAGE_DAYS_OPEN;
use crate::{RequestList, RequestOutcome, RequestQuery, RequestTotal};
use scoregate_base::clock::Day;

/// Stores totals of a node.
pub(super) fn record(connection: &Connection, node: u64, totals: &[RequestTotal]) -> Result<(), StoreFault> {
    let closed = last_day_before(connection, USAGE_DAYS_OPEN)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO request_nodes (day, application, endpoint, outcome, node, requests) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (day, application, endpoint, outcome, node)
         DO UPDATE SET requests = max(requests, excluded.requests)",
    )?;
    for total in totals.iter().filter(|total| closed.is_none_or(|closed| total.day > closed)) {
        let (day, application) = (total.day.to_string(), total.application.to_string());
        let (outcome, requests) = (total.outcome.word(), stored(total.requests));
        insert.execute(params![day, application, total.endpoint, outcome, node.cast_signed(), requests])?;
    }
    Ok(())
}

/// Requests of an application added up over all nodes.
pub(super) fn read(connection: &Connection, query: &RequestQuery) -> Result<RequestList, StoreFault> {
    let days: serde_json::Value = query.days().map(|day| day.to_string()).collect();
    // Days one by one, so that both tables are searched by day and application.
    let mut read = connection.prepare_cached(
        "SELECT day, endpoint, outcome, sum(requests) FROM (
             SELECT day, endpoint, outcome, requests FROM request_days
             WHERE day IN (SELECT value FROM json_each(?1)) AND application = ?2
             UNION ALL
             SELECT day, endpoint, outcome, requests FROM request_nodes
             WHERE day IN (SELECT value FROM json_each(?1)) AND application = ?2
         )
         GROUP BY day, endpoint, outcome ORDER BY day, endpoint, outcome",
    )?;
    let mut rows = read.query(params![days.to_string(), query.application.to_string()])?;
    let mut list = RequestList::default();
    while let Some(row) = rows.next()? {
        let (day, outcome): (String, String) = (row.get(0)?, row.get(2)?);
        // Other texts come from manual edits or a newer release.
        if let (Some(day), Some(outcome)) = (Day::parse(&day), RequestOutcome::parse(&outcome)) {
            let (endpoint, requests) =
                (row.get::<_, String>(1)?.into(), row.get::<_, i64>(3)?.unsigned_abs());
            let application = query.application;
            list.totals.push(RequestTotal { day, application, endpoint, outcome, requests });
        }
    }
    Ok(list)
}
