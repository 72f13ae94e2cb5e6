//! An example of each error.

use serde_json::{Value, json};

use scoregate_base::routes::{
    AllowedValues, ErrorBody, Param, Period,
    bodies::TIER,
    codes::{CodeRow, ErrorCode},
};

use super::schemas::{insert, subject};
use crate::pages::{DOCS, sample::INSTANT};

/// The exhausted limit for each code that has a limit: its name, its quota, and its window in seconds.
const LIMITS: [(ErrorCode, &str, u64, u64); 3] = [
    (ErrorCode::QuotaExceeded, "day", 10, 86_400),
    (ErrorCode::RateLimitExceeded, "minute", 2, 60),
    (ErrorCode::TooManyRefusals, "guard", 60, 60),
];

/// The body of an error with this code.
pub fn body(row: &'static CodeRow) -> Value {
    let message = row.message();
    let mut members = vec![b'{'];
    ErrorBody::new(
        row,
        &message,
        subject(row).map(|param| (param, allowed(row, param))),
    )
    .write(&mut members);
    members.push(b'}');
    let mut body: Value = serde_json::from_slice(&members).expect("it is written as JSON");
    if let Some((_, name, quota, window)) = LIMITS.iter().find(|(code, ..)| *code == row.code) {
        let limit = json!({ "name": name, "quota": quota, "remaining": 0, "window_seconds": window,
            "reset_at": INSTANT, "retry_after": 37 });
        insert(&mut body, "limit", limit);
    }
    if row.code == ErrorCode::PlanRequired {
        insert(&mut body, TIER, "pro".into());
    }
    insert(&mut body, "request_id", "01jd6v8k2m3n4p5q".into());
    insert(&mut body, "docs", format!("{DOCS}#{}", row.word).into());
    body
}

/// The values of a parameter that the caller may use.
fn allowed(row: &CodeRow, param: Param) -> AllowedValues {
    if row.code == ErrorCode::LatestRequiresPlan {
        return AllowedValues::Words(vec![
            Period::Day.word(),
            Period::Week.word(),
            Period::Month.word(),
        ]);
    }
    param.allowed()
}
