//! Parameters as data: queries, separated by blanks, and their meaning. The tests are in `params`.

/// Queries of `/models` with a paid key that mean the same as none.
pub const SAME_AS_NONE: &str = "
    period=latest sortBy=combined period=%6Catest PERIOD=24h Period=24h period[]=24h period[0]=24h
    period%5B%5D=24h period.x=24h sortby=speed sort_by=speed sort=speed limit=0 limit=abc limit=10&limit=20 id=x
    x=1 x=%zz x=% %zz=1 %ff=1 %=1 & &&& = =24h &= +period=24h period+=24h %20period=24h period%20=24h
    period%00=24h %00period=24h period;=24h period%3D24h period%26=24h %2570eriod=24h x=period=24h x=1;period=24h
    x=1%26period=24h ?period=24h api_key=abc callback=x format=xml _=1 utf8=%E2%9C%93 x=/../../me
    PERIOD=24h&Period=7D periods=24h perio=24h
";

/// Queries of `/models` and their meaning.
#[rustfmt::skip]
pub const MODELS: [(&str, &str); 25] = [
    ("period=24h", "period=24h&sortBy=combined"),
    ("period=7d", "period=7d&sortBy=combined"),
    ("period=1m", "period=1m&sortBy=combined"),
    ("sortBy=reasoning", "period=latest&sortBy=reasoning"),
    ("sortBy=speed", "period=latest&sortBy=speed"),
    ("sortBy=price", "period=latest&sortBy=price"),
    ("sortBy=coding", "period=latest&sortBy=coding"),
    ("sortBy=7axis", "period=latest&sortBy=7axis"),
    ("sortBy=tooling", "period=latest&sortBy=tooling"),
    ("period=24h&sortBy=speed", "period=24h&sortBy=speed"),
    ("sortBy=speed&period=24h", "period=24h&sortBy=speed"),
    ("&period=24h&&sortBy=speed&", "period=24h&sortBy=speed"),
    ("period=%32%34h", "period=24h&sortBy=combined"),
    ("p%65riod=24h", "period=24h&sortBy=combined"),
    ("%70%65%72%69%6f%64=24h", "period=24h&sortBy=combined"),
    ("%70%65%72%69%6F%64=%32%34%68", "period=24h&sortBy=combined"),
    ("period=%37%64", "period=7d&sortBy=combined"),
    ("sort%42y=speed", "period=latest&sortBy=speed"),
    ("sortBy=%37axis", "period=latest&sortBy=7axis"),
    ("x=1&period=24h", "period=24h&sortBy=combined"),
    ("period=24h&x=1", "period=24h&sortBy=combined"),
    ("period=24h&PERIOD=7d", "period=24h&sortBy=combined"),
    ("period=24h&period[]=7d", "period=24h&sortBy=combined"),
    ("period[]=7d&period=24h", "period=24h&sortBy=combined"),
    ("period=24h&sortby=price", "period=24h&sortBy=combined"),
];

/// Queries of `/models` that are `invalid_period`.
pub const BAD_PERIODS: &str = "
    period= period period=7D period=24H period=LATEST period=Latest period=24 period=1M period=30d period=1d
    period=24h%20 period=%2024h period=+7d period=7d+ period=%2B7d period=24h%09 period=24h;x
    period=24h;sortBy=speed period=24h%26sortBy=speed period=latest%00 period=%00 period=%00latest period=24h%0a
    period=24h%0d%0aX:1 period=%2532%2534h period=%zz period=% period=%2 period=24h% period=24%h period=%ff
    period=%c0%b2%34h period=%u0032 period=24h,7d period=24h|7d period=null period=undefined period=[24h]
    period=%2224h%22 period='24h' period=24h/ period=../24h period=%2e%2e period==24h period=24h=
    period=%E2%80%8B24h period=%EF%BC%92%EF%BC%94h period=* period=24h? period=24h&period=24h
    period=24h&period=latest period=latest&period=24h period=24h&p%65riod=24h period=24h&period period&period=24h
    period=&period=24h period=24h&period= period=24h&x=1&period=7d period=24h&period=%zz period=%zz&period=24h
    period=24h&sortBy=speed&period=24h period=x&sortBy=y sortBy=y&period=x sortBy=y&sortBy=y&period=x
";

/// Queries of `/models` that are `invalid_sort_by`.
pub const BAD_SORTS: &str = "
    sortBy= sortBy sortBy=Combined sortBy=SPEED sortBy=7Axis sortBy=7axis%20 sortBy=+speed sortBy=speed,price
    sortBy=name sortBy=-speed sortBy=speed; sortBy=%zz sortBy=speed%00 sortBy=7 sortBy=axis
    sortBy=speed&sortBy=speed sortBy=speed&sortBy=price sortBy=price&sort%42y=price period=24h&sortBy=x
";
