//! Times and days: nanoseconds of wall time and of monotonic time, and days of the UTC calendar. The code is pure.

use std::{fmt, str::FromStr, time::Duration};

use jiff::{
    SignedDuration,
    civil::{Date, date},
    fmt::temporal::DateTimePrinter,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub const NANOS: u64 = 1_000_000_000;
const DAY_SECONDS: u64 = 86_400;

/// Wall time: nanoseconds since 1970-01-01 UTC. It may step, so it is used only for calendar decisions. For a minute
/// after a step forward, a clock still returns time extrapolated from before the step (see `steps`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wall(pub(super) u64);

/// Monotonic time: nanoseconds since the clock was created. All durations are measured in monotonic time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub(super) u64);

/// Monotonic time starts at ten years, so that times before the start can be represented.
pub const START: Mono = Mono(10 * 365 * DAY_SECONDS * NANOS);

/// Nanoseconds since boot. This clock continues during suspend and cannot be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boot(pub u64);

/// One reading of the machine's clocks.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    pub wall: Wall,
    pub mono: Mono,
    pub boot: Boot,
}

/// A day of the UTC calendar, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(u32);

/// One reading of both times. All decisions about a request use the same reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Wall time.
    pub wall: Wall,
    /// Monotonic time.
    pub mono: Mono,
}

impl Wall {
    /// The time this many seconds after 1970-01-01 UTC.
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(NANOS))
    }

    /// The time this many milliseconds after 1970-01-01 UTC.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Whole seconds since 1970-01-01 UTC.
    pub const fn seconds(self) -> u64 {
        self.0 / NANOS
    }

    /// Whole milliseconds since 1970-01-01 UTC.
    pub const fn millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// Nanoseconds since 1970-01-01 UTC.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The UTC day of this time.
    pub fn day(self) -> Day {
        // A u64 of nanoseconds overflows in the year 2554, and a u32 can represent all days until then.
        Day(u32::try_from(self.seconds() / DAY_SECONDS).unwrap_or(u32::MAX))
    }

    /// This time plus `by`.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// This time minus `by`.
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(by)))
    }

    /// This time, rounded up to a whole second.
    pub const fn rounded_up(self) -> Self {
        Self::from_seconds(self.0.div_ceil(NANOS))
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Formats the time as `2026-11-22T00:00:00Z`, with milliseconds only if they are not zero.
    pub fn rfc3339(self) -> String {
        let Ok(at) =
            jiff::Timestamp::from_millisecond(i64::try_from(self.millis()).unwrap_or(i64::MAX))
        else {
            return String::from("9999-12-31T23:59:59Z");
        };
        let digits = if self.millis().is_multiple_of(1_000) {
            0
        } else {
            3
        };
        DateTimePrinter::new()
            .precision(Some(digits))
            .timestamp_to_string(&at)
    }

    /// Formats the time as `Sun, 22 Nov 2026 00:00:00 GMT`, the format of HTTP headers.
    pub fn http_date(self) -> String {
        let seconds = i64::try_from(self.seconds()).unwrap_or(i64::MAX);
        let at = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX);
        at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Parses an RFC 3339 time; `None` for anything else and for times before 1970.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let text = text.trim();
        if has_offset_of_days(text) {
            return None;
        }
        let at: jiff::Timestamp = text.parse().ok()?;
        u64::try_from(at.as_nanosecond()).ok().map(Self)
    }

    /// Parses the date of an HTTP header (RFC 9110's preferred format); `None` for anything else.
    pub fn parse_http_date(text: &str) -> Option<Self> {
        let rest = text.trim().strip_suffix(" GMT")?;
        let civil = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S", rest).ok()?;
        let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        u64::try_from(zoned.timestamp().as_second())
            .ok()
            .map(Self::from_seconds)
    }
}

impl Mono {
    /// Nanoseconds since the clock was created.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// The time this many nanoseconds after the clock was created.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// This time plus `by`.
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(nanos(by)))
    }

    /// The duration since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Boot {
    /// The duration since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl ClockReading {
    pub const fn now(self) -> Now {
        Now {
            wall: self.wall,
            mono: self.mono,
        }
    }

    pub fn later(self, by: Duration) -> Self {
        let boot = Boot(self.boot.0.saturating_add(nanos(by)));
        Self {
            wall: self.wall.plus(by),
            mono: self.mono.plus(by),
            boot,
        }
    }
}

impl Now {
    /// The monotonic time of a past or future wall time.
    pub fn mono_at(self, wall: Wall) -> Mono {
        let before = nanos(self.wall.since(wall));
        Mono(
            self.mono
                .plus(wall.since(self.wall))
                .0
                .saturating_sub(before),
        )
    }

    /// The wall time of a past or future monotonic time.
    pub fn wall_at(self, mono: Mono) -> Wall {
        self.wall
            .plus(mono.since(self.mono))
            .minus(self.mono.since(mono))
    }
}

const EPOCH: Date = date(1970, 1, 1);

impl Day {
    /// The day this many days after 1970-01-01.
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// Parses a day such as `2026-11-22`; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let days = EPOCH.until(text.parse::<Date>().ok()?).ok()?.get_days();
        let day = Self(u32::try_from(days).ok()?);
        (day.to_string() == text).then_some(day)
    }

    /// Days since 1970-01-01.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The following day.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The first day of the month that contains this day, and the first day of the next month. Months begin on day
    /// `anchor`, or on the last day of a shorter month.
    pub fn month(self, anchor: u8) -> [Self; 2] {
        let date = self.date();
        let this = month_start(date, anchor);
        let bounds = if date < this {
            let before = date.first_of_month().yesterday().unwrap_or(Date::MIN);
            [month_start(before, anchor), this]
        } else {
            let next = date.last_of_month().tomorrow();
            [
                this,
                next.map_or(Date::MAX, |next| month_start(next, anchor)),
            ]
        };
        bounds.map(Self::from_date)
    }

    fn date(self) -> Date {
        let days = SignedDuration::from_hours(i64::from(self.0) * 24);
        EPOCH.checked_add(days).unwrap_or(Date::MAX)
    }

    /// The day of a date; 1970-01-01 for earlier dates.
    fn from_date(date: Date) -> Self {
        let days = EPOCH.until(date).map_or(0, |span| span.get_days());
        Self(u32::try_from(days).unwrap_or(0))
    }

    /// The time at which this day begins.
    pub const fn start(self) -> Wall {
        Wall::from_seconds(self.0 as u64 * DAY_SECONDS)
    }

    /// The time at which this day ends.
    pub const fn end(self) -> Wall {
        Wall::from_seconds((self.0 as u64 + 1) * DAY_SECONDS)
    }
}

/// The day `anchor` of the month of a date, or the last day of a shorter month.
fn month_start(date: Date, anchor: u8) -> Date {
    let day = i8::try_from(anchor).unwrap_or(i8::MAX);
    let first = date.first_of_month();
    let within = first.with().day(day.clamp(1, first.days_in_month()));
    within.build().unwrap_or(first)
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.date())
    }
}

/// The text is not an RFC 3339 timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a timestamp such as 2027-01-31T00:00:00Z")]
pub struct BadTimestamp;

/// The string is not a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a day such as 2026-11-22")]
pub struct BadDay;

impl FromStr for Wall {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        Self::parse_rfc3339(text).ok_or(BadTimestamp)
    }
}

impl FromStr for Day {
    type Err = BadDay;

    fn from_str(text: &str) -> Result<Self, BadDay> {
        Self::parse(text).ok_or(BadDay)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Wall {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Wall {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Whether an offset is 24 hours or more. The calendar library accepts such offsets, but RFC 3339 does not.
fn has_offset_of_days(text: &str) -> bool {
    let Some((_, offset)) = text.rsplit_once(['+', '-']) else {
        return false;
    };
    let is_offset = offset.bytes().all(|b| b.is_ascii_digit() || b == b':');
    is_offset && offset.get(..2).is_some_and(|hours| hours >= "24")
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_at_the_next_midnight() {
        let noon = Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap();
        assert_eq!(noon.day().end().rfc3339(), "2026-11-22T00:00:00Z");
        assert_eq!(noon.day().to_string(), "2026-11-21");
    }

    #[test]
    fn a_day_has_one_spelling_within_the_calendar() {
        for text in ["1970-01-01", "2024-02-29", "2026-11-22", "9999-12-31"] {
            assert_eq!(
                Day::parse(text).map(|day| day.to_string()).as_deref(),
                Some(text)
            );
        }
        for text in [
            "1969-12-31",
            "2026-02-29",
            "20261122",
            "2026-11-22T00:00:00",
            "2026-1-2",
            "a day",
            "",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
        assert_eq!(Day::from_number(u32::MAX).to_string(), "9999-12-31");
    }

    #[test]
    fn an_offset_of_a_day_or_more_is_no_timestamp() {
        for (text, is_valid) in [
            ("2026-11-30T12:00:00+23:59", true),
            ("2026-11-30T12:00:00-23:59", true),
            ("2026-11-30T12:00:00Z", true),
            ("2026-11-30T12:00:00+24:00", false),
            ("2026-11-30T12:00:00-25:30", false),
            ("2026-11-30T12:00:00+2400", false),
        ] {
            assert_eq!(Wall::parse_rfc3339(text).is_some(), is_valid, "{text}");
        }
    }

    fn month(day: &str, anchor: u8) -> [String; 2] {
        Day::parse(day)
            .unwrap()
            .month(anchor)
            .map(|day| day.to_string())
    }

    #[test]
    fn a_month_begins_on_its_anchor_or_on_the_last_day_of_a_shorter_month() {
        for (day, anchor, expected) in [
            ("2026-11-21", 1, ["2026-11-01", "2026-12-01"]),
            ("2026-11-01", 1, ["2026-11-01", "2026-12-01"]),
            ("2026-11-30", 1, ["2026-11-01", "2026-12-01"]),
            ("2026-12-31", 1, ["2026-12-01", "2027-01-01"]),
            ("2026-11-14", 15, ["2026-10-15", "2026-11-15"]),
            ("2026-11-15", 15, ["2026-11-15", "2026-12-15"]),
            ("2027-01-14", 15, ["2026-12-15", "2027-01-15"]),
            ("2026-02-27", 31, ["2026-01-31", "2026-02-28"]),
            ("2026-02-28", 31, ["2026-02-28", "2026-03-31"]),
            ("2028-02-28", 31, ["2028-01-31", "2028-02-29"]),
            ("2028-02-29", 30, ["2028-02-29", "2028-03-30"]),
            ("1970-01-05", 15, ["1970-01-01", "1970-01-15"]),
        ] {
            assert_eq!(month(day, anchor), expected, "{day} from {anchor}");
        }
        assert_eq!(month("9999-12-31", 1)[0], "9999-12-01");
    }

    #[test]
    fn every_day_is_in_exactly_one_month_of_each_anchor() {
        for anchor in 1..=31 {
            let mut day = Day::parse("2026-01-01").unwrap();
            let mut expected = day.month(anchor);
            // Four years are a whole cycle of leap years.
            for _ in 0..4 * 366 {
                let [first, next] = day.month(anchor);
                if day == expected[1] {
                    assert_eq!(first, day, "{anchor}");
                    expected = [first, next];
                }
                assert_eq!([first, next], expected, "{day} from {anchor}");
                assert!((28..=32).contains(&(next.number() - first.number())));
                day = day.next();
            }
        }
    }

    #[test]
    fn timestamps_have_one_spelling_and_round_trip() {
        let at = Wall::from_millis(1_763_726_400_250);
        assert_eq!(Wall::parse_rfc3339(&at.rfc3339()), Some(at));
        let whole = Wall::from_seconds(1_763_726_400);
        assert_eq!(Wall::parse_http_date(&whole.http_date()), Some(whole));
        assert_eq!(whole.http_date(), "Fri, 21 Nov 2025 12:00:00 GMT");
        assert_eq!(Wall::parse_http_date("yesterday"), None);
    }
}
