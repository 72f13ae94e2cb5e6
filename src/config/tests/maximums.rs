//! Tests the maximum numbers of items in lists and named tables.

use super::problems;

/// A list with one item more than `most`.
fn list(setting: &str, most: usize, item: impl Fn(usize) -> String) -> String {
    let items: Vec<String> = (0..=most).map(item).collect();
    format!("{setting} = [{}]", items.join(", "))
}

#[test]
fn more_items_than_the_maximum_are_reported() {
    let host = |number| format!("\"h{number}.example\"");
    let origin = |number| format!("\"http://h{number}.example\"");
    let tiers: Vec<String> = (0..9)
        .map(|number| format!("[tiers.a{number}]\nminute = 1\nday = 1\npaid = true\n"))
        .collect();
    let built_in = "upstream = \"built-in\"\n";
    for (text, report) in [
        (
            built_in.to_owned() + &list("cors.origins", 64, origin),
            "cors.origins: found 65 origins; the maximum is 64",
        ),
        (
            built_in.to_owned() + &list("admin.hosts", 64, host),
            "admin.hosts: found 65 hosts; the maximum is 64",
        ),
        (
            built_in.to_owned() + &list("site.allowed_mail_domains", 10_000, host),
            "site.allowed_mail_domains: found 10001 domains; the maximum is 10000",
        ),
        (
            list("upstream.urls", 16, origin),
            "upstream.urls: found 17 addresses; the maximum is 16",
        ),
        (
            built_in.to_owned() + &tiers.concat(),
            "tiers: found 9 tiers; the maximum is 8",
        ),
    ] {
        assert_eq!(problems(&text), report);
    }
}
