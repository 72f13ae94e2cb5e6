//! Tests the status page and its feed for various states of the service.

use scoregate_base::clock::{Day, Wall};
use scoregate_store::{IncidentState, StatusDay, StatusHistory, StatusMessage};

use super::*;

const NOON: Wall = Wall::from_seconds(20_413 * 86_400 + 43_200); // 2025-11-21T12:00:00Z
const EVIL: &str = "<script>\"'&]]>{{changed}}";

fn site() -> StatusSite {
    StatusSite {
        service: "Scores".into(),
        base_url: None,
        sign_up: false,
    }
}

fn current() -> DataState {
    DataState {
        newest: Some(NOON),
        expected: Some(Wall::from_seconds(NOON.seconds() + 3_600)),
        stale_since: None,
    }
}

/// A service that was up throughout its `days` days.
fn up(days: u32) -> ServiceStatus {
    let today = NOON.day().number();
    let stored = |ago| StatusDay {
        day: Day::from_number(today - ago),
        ready: 1_440,
        fresh: 1_440,
    };
    let first_minute = Some(u64::from(today + 1 - days) * 1_440);
    let history = StatusHistory {
        first_minute,
        days: (0..days).map(stored).collect(),
    };
    let end = u64::from(today) * 1_440 + 720;
    ServiceStatus {
        is_ready: true,
        data: current(),
        days: last_days(&history, end),
        counted_until: Some(NOON),
        begun: first_minute.map(|minute| Wall::from_seconds(minute * 60)),
        ..ServiceStatus::default()
    }
}

fn message(
    id: u64,
    incident: u64,
    state: IncidentState,
    title: &str,
    message: &str,
) -> StatusMessage {
    let at = Wall::from_seconds(NOON.seconds() + id);
    StatusMessage {
        id,
        incident,
        at,
        state,
        title: title.into(),
        message: message.into(),
    }
}

fn html(status: &ServiceStatus) -> String {
    let pages = StatusPages::new(&site(), status, NOON);
    let page = pages.find("/status").unwrap();
    assert_eq!(
        (page.content_type, page.cache_control),
        ("text/html; charset=utf-8", "public, max-age=30")
    );
    assert!(page.is_public() && !page.content_policy.to_str().unwrap().contains("script"));
    let html = String::from_utf8(page.body().to_vec()).unwrap();
    assert!(
        !html.contains("{{service}}") && !html.contains("<script"),
        "{html}"
    );
    html
}

/// The lines about the state of the service, each with its CSS class.
fn state_lines(status: &ServiceStatus) -> Vec<String> {
    let html = html(status);
    let lines = html
        .lines()
        .filter_map(|line| line.strip_prefix("<p class=\"state "));
    let words = |line: &str| {
        let (class, rest) = line.split_once('"').unwrap();
        let words = rest.split_once("<span dir=\"auto\">").unwrap().1;
        format!("{class}: {}", words.trim_end_matches("</span></p>"))
    };
    lines.map(words).collect()
}

fn atom(site: &StatusSite, status: &ServiceStatus) -> String {
    let page = StatusPages::new(site, status, NOON)
        .find("/status.atom")
        .unwrap();
    assert_eq!(page.content_type, "application/atom+xml; charset=utf-8");
    String::from_utf8(page.body().to_vec()).unwrap()
}

/// The ids of a feed and its entries.
fn ids(feed: &str) -> Vec<&str> {
    feed.split("<id>")
        .skip(1)
        .map(|part| part.split("</id>").next().unwrap())
        .collect()
}

#[test]
fn the_headline_follows_open_incidents_and_the_measured_state_is_always_below_it() {
    let fine = up(90);
    let stale = DataState {
        stale_since: Some(NOON),
        ..current()
    };
    let states = [
        (fine.clone(), "good: The API is up, and its data is current"),
        (
            ServiceStatus {
                data: DataState::default(),
                ..fine.clone()
            },
            "warn: The API is up, but has no data yet",
        ),
        (
            ServiceStatus {
                data: stale,
                ..fine.clone()
            },
            "warn: The API is up, but its data is stale",
        ),
        (
            ServiceStatus {
                data: stale,
                store_fails: true,
                ..fine.clone()
            },
            "warn: The API is up, but degraded",
        ),
        (
            ServiceStatus {
                is_ready: false,
                store_fails: true,
                ..fine
            },
            "warn: The API is down at this gateway",
        ),
    ];
    let open = |id| {
        message(
            id,
            id,
            IncidentState::Identified,
            "Late scores",
            "We are looking into it.",
        )
    };
    let over = |id| message(id + 9, id, IncidentState::Resolved, "Late scores", "Over.");
    for (status, expected) in states {
        let with = |messages: Vec<StatusMessage>| {
            state_lines(&ServiceStatus {
                messages,
                ..status.clone()
            })
        };
        assert_eq!(with(vec![]), [expected]);
        assert_eq!(with(vec![over(1), open(1)]), [expected]);
        assert_eq!(
            with(vec![open(1)]),
            ["warn: Open incident: Late scores (identified)", expected]
        );
        assert_eq!(
            with(vec![open(2), open(1)]),
            ["warn: 2 open incidents", expected]
        );
    }
}

#[test]
fn stale_data_is_shown_with_the_time_since_when() {
    let since = Wall::from_seconds(NOON.seconds() - 3_605);
    let data = DataState {
        stale_since: Some(since),
        expected: Some(since),
        newest: Some(NOON),
    };
    let page = html(&ServiceStatus {
        data,
        backend_fails: true,
        ..up(2)
    });
    let time = "<time datetime=\"2025-11-21T10:59:00Z\">2025-11-21 10:59 UTC</time>";
    for expected in [
        &format!("<dt>State</dt><dd>stale since {time}</dd>"),
        &format!("<dt>Next refresh expected</dt><dd>{time}</dd>"),
        &format!("A refresh of the data was expected at {time}"),
        "The data source is not responding; we are serving stored data.",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[test]
fn a_new_service_has_no_history_and_its_first_day_counts_from_its_first_minute() {
    assert!(
        html(&ServiceStatus {
            days: last_days(&StatusHistory::default(), 99_999),
            ..up(1)
        })
        .contains("no history yet")
    );
    assert!(
        html(&ServiceStatus {
            days: Vec::new(),
            ..up(1)
        })
        .contains("has not been read yet")
    );
    let page = html(&up(1));
    assert!(
        page.contains("<h3>Availability: 100 %</h3>\n<p>No downtime in 1 day.</p>"),
        "{page}"
    );
    assert!(
        page.contains("<p>Never stale while the API was up.</p>")
            && page.contains("No downtime. The table")
    );
    assert_eq!(
        page.matches("<rect class=\"none\"").count(),
        2 * 89,
        "days before the history are not down"
    );
    assert!(page.contains("The history begins at <time datetime=\"2025-11-21T00:00:00Z\">"));
}

#[test]
fn downtime_and_stale_data_are_shown_in_charts_and_in_a_table() {
    let mut status = up(90);
    (status.days[88].up, status.days[88].fresh) = (1_437, 1_400);
    (status.days[87].up, status.days[87].fresh) = (0, 0);
    let page = html(&status);
    assert!(
        page.contains("<h3>Availability: 98.88 %</h3>\n<p>Down for 1 d 3 min in 90 days.</p>"),
        "{page}"
    );
    assert!(page.contains("Stale for 37 min while"), "{page}");
    assert!(page.contains("2 days have downtime.") && page.contains("1 day has stale data."));
    assert!(page.contains("<title>2025-11-20: down for 3 min</title>"));
    assert!(page.contains("<title>2025-11-20: stale for 37 min</title>"));
    let row = "<th scope=\"row\">2025-11-20</th><td>99.79 %</td><td>3 min</td><td>37 min</td>";
    assert!(page.contains(row), "{page}");
    assert_eq!(page.matches("<tr><th scope=\"row\">").count(), 90);
    assert_eq!(page.matches("<rect class=\"down\"").count(), 3);
}

#[test]
fn a_service_that_was_never_up_is_down() {
    let mut status = up(3);
    status
        .days
        .iter_mut()
        .for_each(|day| (day.up, day.fresh) = (0, 0));
    let page = html(&status);
    assert!(
        page.contains("<h3>Availability: 0.00 %</h3>") && !page.contains("Data current"),
        "{page}"
    );
}

#[test]
fn incidents_are_shown_with_all_their_messages_and_open_ones_first() {
    let messages = vec![
        message(4, 1, IncidentState::Resolved, "First", "Over."),
        message(3, 3, IncidentState::Monitoring, "Second", "One.\n\nTwo."),
        message(1, 1, IncidentState::Investigating, "First", "Found."),
    ];
    let page = html(&ServiceStatus { messages, ..up(1) });
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(
        at("Open incidents</h2>") < at("id=\"incident-3\"")
            && at("id=\"incident-3\"") < at("Past incidents")
    );
    assert!(at("Past incidents</h2>") < at("id=\"incident-1\"") && at(">Over.<") < at(">Found.<"));
    assert!(page.contains("<p dir=\"auto\">One.</p>\n<p dir=\"auto\">Two.</p>"));
    assert!(
        page.contains("<h3>Incidents: 2</h3>\n<p>1 is open.</p>"),
        "{page}"
    );
    let none = html(&up(1));
    assert!(
        none.contains("<p>None.</p>")
            && none.contains("<h3>Incidents: 0</h3>\n<p>None is open.</p>")
    );
}

#[test]
fn texts_of_operators_and_settings_are_escaped() {
    let site = StatusSite {
        service: EVIL.into(),
        base_url: Some(format!("https://x.example/{EVIL}")),
        sign_up: true,
    };
    let messages = vec![message(1, 1, IncidentState::Identified, EVIL, EVIL)];
    let status = ServiceStatus { messages, ..up(1) };
    let pages = StatusPages::new(&site, &status, NOON);
    for path in ["/status", "/status.atom"] {
        let text = String::from_utf8(pages.find(path).unwrap().body().to_vec()).unwrap();
        assert!(!text.contains("<script") && !text.contains("'&]"), "{text}");
        assert!(
            text.contains("&lt;script&gt;&quot;&#39;&amp;]]&gt;{{changed}}"),
            "{text}"
        );
    }
}

#[test]
fn equal_content_has_equal_bytes_until_something_changes() {
    let status = up(2);
    let later = Wall::from_seconds(NOON.seconds() + 600);
    let pages = StatusPages::new(&site(), &status, NOON);
    let mut same = status.clone();
    same.counted_until = Some(later);
    same.days[89].counted += 10;
    same.days[89].up += 10;
    same.days[89].fresh += 10;
    assert!(
        pages.changed(&site(), &same, later).is_none(),
        "more minutes without downtime"
    );
    let stale = ServiceStatus {
        data: DataState {
            stale_since: Some(NOON),
            ..current()
        },
        ..status
    };
    let changed = pages.changed(&site(), &stale, later).unwrap();
    let html = String::from_utf8(changed.find("/status").unwrap().body().to_vec()).unwrap();
    assert!(
        html.contains("last changed at <time datetime=\"2025-11-21T12:10:00Z\">"),
        "{html}"
    );
    assert_eq!(
        pages.find("/status.atom").unwrap().body(),
        changed.find("/status.atom").unwrap().body()
    );
}

#[test]
fn only_the_two_paths_are_pages() {
    let pages = StatusPages::new(&site(), &up(1), NOON);
    for path in [
        "/status/",
        "/Status",
        "/status.xml",
        "/",
        "",
        "/status.atom/",
    ] {
        assert!(pages.find(path).is_none(), "{path}");
    }
}

#[test]
fn feed_has_an_entry_for_each_message_with_ids_that_stay() {
    let messages = vec![
        message(2, 1, IncidentState::Resolved, "Late", "Over."),
        message(1, 1, IncidentState::Investigating, "Late", "One.\nTwo."),
    ];
    let status = ServiceStatus {
        messages: messages.clone(),
        ..up(1)
    };
    let feed = atom(&site(), &status);
    assert!(feed.starts_with(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">"
    ));
    assert!(
        feed.contains("<updated>2025-11-21T12:00:02Z</updated>"),
        "{feed}"
    );
    assert!(
        feed.contains("<title>Resolved: Late</title>")
            && feed.contains("<title>Investigating: Late</title>")
    );
    assert!(
        feed.contains(
            "<content type=\"html\">&lt;p dir=&quot;auto&quot;&gt;One.&lt;br&gt;\nTwo.&lt;/p&gt;\n</content>"
        ),
        "{feed}"
    );
    assert!(feed.contains("href=\"/status#incident-1\"") && feed.contains("href=\"/status.atom\""));
    let all = ids(&feed);
    assert_eq!(all.len(), 3);
    assert!(
        all.iter()
            .all(|id| id.len() == 57 && id.starts_with("ni:///sha-256;")),
        "{all:?}"
    );
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);

    let named = StatusSite {
        service: "Scores".into(),
        base_url: Some("https://x.example/api/v1/".into()),
        sign_up: false,
    };
    let absolute = atom(
        &named,
        &ServiceStatus {
            messages: messages[1..].to_vec(),
            ..up(3)
        },
    );
    assert!(absolute.contains(
        "rel=\"self\" type=\"application/atom+xml\" href=\"https://x.example/status.atom\""
    ));
    assert!(absolute.contains("href=\"https://x.example/status#incident-1\""));
    assert_eq!(
        ids(&absolute)[1],
        all[2],
        "the id of a message does not depend on the address"
    );
}

#[test]
fn feed_without_messages_is_as_old_as_the_history_and_other_characters_are_replaced() {
    let empty = atom(&site(), &up(1));
    assert!(
        empty.contains("<updated>2025-11-21T00:00:00Z</updated>") && !empty.contains("<entry>"),
        "{empty}"
    );
    let messages = vec![message(
        1,
        1,
        IncidentState::Identified,
        "a\u{0}b\u{8}",
        "c\u{FFFF}",
    )];
    let feed = atom(&site(), &ServiceStatus { messages, ..up(1) });
    assert!(
        feed.contains("<title>Identified: a\u{FFFD}b\u{FFFD}</title>")
            && feed.contains("c\u{FFFD}"),
        "{feed}"
    );
}
