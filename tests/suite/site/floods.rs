//! Floods of requests for links, from one network and from many. A trusted proxy in front lets a test send requests
//! from many networks.

use std::{net::Ipv6Addr, time::Duration};

use super::browser::Browser;
use crate::world::World;

const PROXIED: &str = "proxies.trusted = [\"127.0.0.1\"]\n";
/// The network of the attacker: `2001:db8:0:aa00::/56`.
const ATTACKER: u128 = 0x2001_0db8_0000_aa00 << 64;
/// The attacker's requests for links per second, and the duration in seconds.
const POSTS: u32 = 25;
const SECONDS: u32 = 120;

impl Browser<'_> {
    fn comes_from(&mut self, address: u128) {
        self.fields = vec![("X-Forwarded-For", Ipv6Addr::from_bits(address).to_string())];
    }
}

#[tokio::test]
async fn a_flood_from_one_ipv6_site_refuses_no_visitor_of_another_network() {
    let world = World::with_sign_up(PROXIED).await;
    let mut robot = Browser::of(&world);
    robot.visit("/account/sign-in").await;
    let csrf = robot.csrf();
    let mut number = 0_u32;
    let mut mails = 0;
    let mut refused = 0;
    let mut visitors = Vec::new();
    for second in 0..SECONDS {
        for _ in 0..POSTS {
            number += 1;
            robot.comes_from(ATTACKER | (u128::from(number % 256) << 64) | u128::from(number));
            let email = format!("victim{number}@example.net");
            let sent = robot
                .submit_only("/account/sign-in", &[("email", &email), ("csrf", &csrf)])
                .await;
            assert!(
                matches!(sent.status, 200 | 429 | 503),
                "{}: {}",
                sent.status,
                robot.page
            );
            if sent.status == 200 {
                mails += 1;
            } else {
                refused += 1;
            }
        }
        if second % 5 == 4 || second > SECONDS - 4 {
            let visitor = visitors.len();
            let mut ann = Browser::of(&world);
            ann.comes_from(((0x2001_0db8_1000_0000 + (visitor as u128) * 0x1_0000) << 64) | 1);
            assert_eq!(ann.visit("/account/sign-in").await, "/account/sign-in");
            let email = format!("visitor{visitor}@example.org");
            let csrf = ann.csrf();
            let sent = ann
                .submit_only("/account/sign-in", &[("email", &email), ("csrf", &csrf)])
                .await;
            visitors.push(sent.status);
        }
        world.pass(Duration::from_secs(1));
    }
    let served = visitors.iter().filter(|status| **status == 200).count();
    assert_eq!(
        (visitors.len(), served),
        (26, 26),
        "{mails} mails to others, {refused} refused"
    );
    assert!(mails <= 120 + 4, "{mails} mails");
    let counted = async |result| {
        world
            .counted(&format!(
                "scoregate_sign_in_links_total{{result=\"{result}\"}}"
            ))
            .await
    };
    assert_eq!(counted("queued").await, mails + 26);
    assert_eq!(counted("total_limit").await, 0, "nobody else was refused");
    assert!(counted("reserved").await > 0 && counted("network_limit").await > 0);
}

#[tokio::test]
async fn a_network_creates_ten_accounts_a_day_with_addresses_of_a_domain() {
    let world = World::with_sign_up(PROXIED).await;
    let sign_up = async |address: u128, email: String| {
        let mut person = Browser::of(&world);
        person.comes_from(address);
        let token = person.request_link(&email).await;
        let used = person.use_link(&token).await;
        let is_limited = used.status == 429;
        assert_eq!(
            is_limited,
            person.page.contains("Too many new accounts"),
            "{}",
            person.page
        );
        // A /64 may create another account every 2.4 hours, and a /56 two.
        assert!(
            !is_limited || (4_000..=4_320).contains(&used.number("retry-after")),
            "{:?}",
            used.headers
        );
        used.status
    };
    let robot = |number: u128| ATTACKER | ((number % 4) << 64) | number;
    let mut accepted = 0;
    let mut refused = 0;
    for number in 0..25 {
        match sign_up(
            robot(number),
            format!("robot{number}@sub{number}.example.net"),
        )
        .await
        {
            303 => accepted += 1,
            429 => refused += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((accepted, refused), (20, 5), "twice the limit of a /64");
    // Neither other networks nor other domains are affected, and owners of accounts can sign in.
    assert_eq!(sign_up(robot(1), "ann@example.org".into()).await, 303);
    assert_eq!(sign_up(1 << 64, "bob@example.net".into()).await, 303);
    assert_eq!(
        sign_up(robot(0), "robot0@sub0.example.net".into()).await,
        303
    );
    assert_eq!(
        world
            .counted("scoregate_sign_ins_total{result=\"account_limit\"}")
            .await,
        5
    );
    world.pass(Duration::from_hours(24));
    assert_eq!(sign_up(ATTACKER, "late@sub.example.net".into()).await, 303);
}
