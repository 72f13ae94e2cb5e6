//! The text form of a response for language models: a table of the most important fields, which needs only a fraction
//! of the tokens.

use serde::Deserialize;
use serde_json::{Map, Value};

use scoregate_base::routes::Endpoint;

/// The members of a response that the text contains.
#[derive(Deserialize)]
struct BriefBody {
    generated_at: Option<String>,
    period: Option<String>,
    data: Vec<Map<String, Value>>,
}

/// The table for a response of this endpoint: a line about the data, the names of the fields, and a row for each item.
/// `None` if `body` is not a response of the API.
pub fn brief_text(endpoint: &Endpoint, body: &[u8]) -> Option<String> {
    let BriefBody {
        generated_at,
        period,
        data,
    } = serde_json::from_slice(body).ok()?;
    let period = period
        .map(|period| format!(", period {period}"))
        .unwrap_or_default();
    let generated_at = generated_at
        .map(|at| format!(", data of {at}"))
        .unwrap_or_default();
    let mut rows = String::new();
    let mut dates = vec![String::new(); endpoint.brief.len()];
    for item in &data {
        let cells = endpoint.brief.iter().zip(&mut dates).map(|(name, date)| {
            item.get(*name)
                .map(|value| without_repeated_date(cell(value), date))
                .unwrap_or_default()
        });
        rows.push('\n');
        rows.push_str(&cells.collect::<Vec<_>>().join("|"));
    }
    let has_dates = dates.iter().any(|date| !date.is_empty());
    let note = if has_dates {
        "; a time alone has the date of the row above"
    } else {
        ""
    };
    Some(format!(
        "{} items{period}{generated_at}{note}\n{}{rows}",
        data.len(),
        endpoint.brief.join("|")
    ))
}

/// Shortens a time to hours and minutes if it has the same date as the previous time in the column. Full times would
/// take up half of the tokens of a row.
fn without_repeated_date(cell: String, previous: &mut String) -> String {
    let parts = cell
        .strip_suffix(":00Z")
        .and_then(|instant| instant.split_once('T'));
    let Some((date, time)) = parts.filter(|(date, time)| (date.len(), time.len()) == (10, 5))
    else {
        return cell;
    };
    if date == previous {
        return time.to_owned();
    }
    date.clone_into(previous);
    format!("{date}T{time}Z")
}

/// Formats a value for a cell. Members of an object are separated by spaces, elements of an array by semicolons.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.replace(['|', '\n', '\r'], " "),
        Value::Array(elements) => elements.iter().map(cell).collect::<Vec<_>>().join(";"),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}={}", cell(value)))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::Route;

    #[test]
    fn a_list_becomes_a_table() {
        let body = br#"{"success":true,"generated_at":"2026-11-21T13:00:00Z","period":"24h","count":2,"data":[
            {"id":"a","name":"A","provider":"x|y","currentScore":82.1,"trend":"up","status":"good","other":[1]},
            {"id":"b","trend":"down","status":"un\nknown"}]}"#;
        let text = brief_text(Route::Models.endpoint(), body).unwrap();
        assert_eq!(
            text,
            "2 items, period 24h, data of 2026-11-21T13:00:00Z\nid|provider|currentScore|trend|status\na|x y|82.1|up|good\n\
             b|||down|un known"
        );
    }

    #[test]
    fn a_date_is_written_once() {
        let body = br#"{"period":"24h","data":[{"timestamp":"2026-11-21T01:00:00Z","score":82.1},
            {"timestamp":"2026-11-21T00:00:00Z","score":82.2},{"timestamp":"2026-11-20T23:00:00Z","score":7},
            {"timestamp":"2026-11-20T22:00:07Z","score":8}]}"#;
        assert_eq!(
            brief_text(Route::History.endpoint(), body).unwrap(),
            "4 items, period 24h; a time alone has the date of the row above\ntimestamp|score\n2026-11-21T01:00Z|82.1\n\
             00:00|82.2\n2026-11-20T23:00Z|7\n2026-11-20T22:00:07Z|8"
        );
    }

    #[test]
    fn nested_values_are_in_one_cell() {
        let body = br#"{"data":[{"tier":"pro","limits":[{"name":"day","remaining":7},{"name":"minute","remaining":1}]}]}"#;
        let text = brief_text(Route::Me.endpoint(), body).unwrap();
        let row = text.lines().last().unwrap();
        assert_eq!(row, "pro|name=day remaining=7;name=minute remaining=1||");
        assert_eq!(brief_text(Route::Me.endpoint(), b"[]"), None);
    }
}
