//! A browser without JavaScript: cookies, forms and links. It also reads the mail that the service would send.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::{
    client::{Connection, Response},
    program::sql,
    world::{World, good},
};

/// Settings with sign-up. The mail server does not exist, so all mail stays in the queue, where tests read it.
const ON: &str = "site.sign_up = true\nmail.server = \"127.0.0.1:1\"\nmail.tls = \"none\"\nmail.from = \"api@example.org\"\n";

impl World {
    /// A gateway where people can sign up.
    pub(super) async fn with_sign_up(settings: &str) -> Self {
        let has_address = settings.contains("service.base_url");
        let address = if has_address {
            ""
        } else {
            "service.base_url = \"http://127.0.0.1:8080\"\n"
        };
        Self::with(&format!("{ON}{address}{settings}"), good).await
    }

    /// Rows of the store.
    pub fn rows(&self, query: &str) -> Vec<String> {
        sql(self.directory.path(), query)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The tokens of all links sent to an address, oldest first.
    pub(super) fn links(&self, email: &str) -> Vec<String> {
        let query = format!(
            "SELECT replace(text, char(10), ' ') FROM mail_queue WHERE recipient = '{email}' AND kind = 'sign_in'
             ORDER BY created_at"
        );
        let token = |text: &String| {
            let (_, rest) = text.split_once("/account/confirm?token=").unwrap();
            rest.split(' ').next().unwrap().to_owned()
        };
        self.rows(&query).iter().map(token).collect()
    }
}

/// A browser.
pub struct Browser<'w> {
    /// The gateway whose clock is advanced and whose mail is read; `None` if the test does both.
    pub(super) world: Option<&'w World>,
    pub address: SocketAddr,
    pub(super) cookies: BTreeMap<String, String>,
    /// Header fields of all requests.
    pub(super) fields: Vec<(&'static str, String)>,
    /// The local address of its connections.
    pub(super) from: IpAddr,
    /// The most recently read page.
    pub page: String,
}

impl<'w> Browser<'w> {
    pub(super) fn of(world: &'w World) -> Self {
        Self {
            world: Some(world),
            ..Browser::to(world.address())
        }
    }

    /// A browser that opens pages of this gateway.
    pub fn to(address: SocketAddr) -> Self {
        let from = IpAddr::from([127, 0, 0, 1]);
        Self {
            world: None,
            address,
            cookies: BTreeMap::new(),
            fields: Vec::new(),
            from,
            page: String::new(),
        }
    }

    /// The bytes of a request.
    pub(super) fn request(&self, method: &str, target: &str, body: Option<&str>) -> Vec<u8> {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.address);
        for (name, value) in &self.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.cookies.is_empty() {
            let pairs: Vec<String> = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            head.push_str(&format!("Cookie: {}\r\n", pairs.join("; ")));
        }
        let Some(body) = body else {
            return format!("{head}\r\n").into_bytes();
        };
        let kind = "Content-Type: application/x-www-form-urlencoded\r\n";
        format!("{head}{kind}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    /// Sends a request and keeps its cookies.
    pub(super) async fn send(
        &mut self,
        method: &str,
        target: &str,
        body: Option<&str>,
    ) -> Response {
        let mut connection = Connection::open_from(self.from, self.address).await;
        connection.write(&self.request(method, target, body)).await;
        let response = connection.read(method == "HEAD").await.expect("a response");
        for (_, line) in response
            .headers
            .iter()
            .filter(|(name, _)| name == "set-cookie")
        {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            if line.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        self.page = String::from_utf8(response.body.clone()).unwrap();
        response
    }

    /// Opens a page.
    pub async fn open(&mut self, target: &str) -> Response {
        self.send("GET", target, None).await
    }

    /// Opens a page and follows redirects. Returns the final target.
    pub async fn visit(&mut self, target: &str) -> String {
        let mut at = target.to_owned();
        for _ in 0..5 {
            let response = self.open(&at).await;
            match response.status {
                303 => response.header("location").clone_into(&mut at),
                200 => return at,
                status => panic!("{at}: {status} {}", self.page),
            }
        }
        panic!("{target} redirects forever");
    }

    /// The CSRF token of the forms on the page.
    pub(super) fn csrf(&self) -> String {
        self.hidden("csrf")
    }

    /// The value of the first hidden field with this name.
    pub fn hidden(&self, name: &str) -> String {
        let tags = self
            .page
            .split("<input ")
            .filter_map(|rest| rest.split('>').next());
        let field = tags
            .filter(|tag| tag.contains("type=\"hidden\""))
            .find(|tag| tag.contains(&format!("name=\"{name}\"")))
            .unwrap_or_else(|| panic!("no field {name}: {}", self.page));
        field
            .split("value=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    }

    /// Submits a form of the page with its hidden fields.
    pub async fn submit(&mut self, target: &str, fields: &[(&str, &str)]) -> Response {
        // The clock advances so that each link has a different time.
        if let Some(world) = self.world {
            world.pass(Duration::from_secs(1));
        }
        let csrf = self.csrf();
        let existing = self
            .page
            .contains("name=\"existing\"")
            .then(|| self.hidden("existing"));
        let mut all = fields.to_vec();
        all.push(("csrf", &csrf));
        all.extend(existing.as_deref().map(|count| ("existing", count)));
        self.submit_only(target, &all).await
    }

    /// Submits exactly these fields.
    pub(super) async fn submit_only(&mut self, target: &str, fields: &[(&str, &str)]) -> Response {
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.send("POST", target, Some(&body)).await
    }

    /// Requests a link and returns its token.
    pub(super) async fn request_link(&mut self, email: &str) -> String {
        self.visit("/account/sign-in").await;
        let sent = self.submit("/account/sign-in", &[("email", email)]).await;
        assert_eq!(sent.status, 200, "{}", self.page);
        self.world.unwrap().links(email).pop().expect("an email")
    }

    /// Uses a link, and accepts the terms if they are shown.
    pub async fn use_link(&mut self, token: &str) -> Response {
        self.visit(&format!("/account/confirm?token={token}")).await;
        let mut fields = vec![("token", token)];
        let shows_terms = self.page.contains("name=\"accept_terms\"");
        let version = if shows_terms {
            self.hidden("terms_version")
        } else {
            String::new()
        };
        if shows_terms {
            fields.extend([("accept_terms", "yes"), ("terms_version", version.as_str())]);
        }
        self.submit("/account/confirm", &fields).await
    }

    /// A browser that is signed in with this address.
    pub async fn signed_in(world: &'w World, email: &str) -> Self {
        let mut browser = Self::of(world);
        browser.sign_in(email).await;
        browser
    }

    /// Signs up or in.
    pub(super) async fn sign_in(&mut self, email: &str) {
        let token = self.request_link(email).await;
        let used = self.use_link(&token).await;
        assert_eq!(
            (used.status, used.header("location")),
            (303, "/account"),
            "{}",
            self.page
        );
        self.visit("/account").await;
    }

    /// Creates an application. Returns its path and its key.
    pub async fn create(&mut self, name: &str) -> (String, String) {
        self.visit("/account").await;
        let created = self
            .submit("/account/applications", &[("name", name)])
            .await;
        assert_eq!(created.status, 200, "{}", self.page);
        let key = self.key();
        let (_, rest) = self
            .page
            .split_once("href=\"/account/applications/")
            .unwrap();
        (
            format!("/account/applications/{}", rest.split('"').next().unwrap()),
            key,
        )
    }

    /// The key on the page.
    pub fn key(&self) -> String {
        let (_, rest) = self
            .page
            .split_once("sg_live_")
            .unwrap_or_else(|| panic!("no key: {}", self.page));
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric())
            .unwrap();
        format!("sg_live_{}", &rest[..end])
    }
}
