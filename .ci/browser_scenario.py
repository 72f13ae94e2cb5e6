"""What a person does with an account: each step acts in the page, and inspects the page that it leads to."""

import json

DESKTOP, PHONE = (1280, 900), (390, 844)
NAME = "Model dashboard"
# More than the overlap of one hour.
LATER = "+61m"


class Scenario:
    """A person with an email address, a browser and a demo."""

    def __init__(self, visitor, demo, inspector, address):
        self.visitor, self.demo, self.inspector, self.address = visitor, demo, inspector, address

    def check(self, *words, status=200):
        """Inspects the page. It has these words and this status."""
        text = self.visitor.value("document.body.innerText")
        for word in words:
            self.visitor.expect(word in text, f"{word!r} is not on the page")
        found = self.inspector.findings(self.visitor, status)
        self.visitor.expect(not found, "\n".join(found))

    def open_link(self):
        """Opens the next mail and clicks at its link."""
        recipient, self.link, body = self.demo.next_mail()
        self.visitor.expect(recipient == self.address, f"the mail is to {recipient}")
        file = f"{self.demo.directory}/mail.html"
        with open(file, "w") as opened:
            opened.write(body)
        self.visitor.go(f"file://{file}")
        found = list(self.inspector.recorded(self.visitor))
        self.visitor.expect(found == [f"request: file://{file}"], f"the mail loads other things: {found}")
        self.visitor.follow("a", self.demo.origin)

    def request_link(self):
        self.visitor.type("#field-email", self.address)
        self.visitor.follow("button", "Send the link")
        self.check("Check your email", self.address)

    def accept_terms(self):
        self.check("Create your account", self.address, "Terms of use", "must be cited as the source")
        self.visitor.click("#field-accept_terms")
        self.visitor.follow("button", "Create account")
        self.check("Your account", self.address, "You have no applications yet")

    def sign_up(self):
        self.visitor.go(f"{self.demo.origin}/")
        self.visitor.follow("a[href='/account/sign-in']")
        self.check("Sign in or sign up")
        self.request_link()
        self.open_link()
        self.accept_terms()
        for cookie in self.visitor.do("Network.getCookies")["cookies"]:
            self.visitor.expect(cookie["name"] == "scoregate-session", f"there is a cookie {cookie['name']}")

    def use_link_again(self):
        self.visitor.go(self.link)
        self.check("link", status=410)
        self.visitor.go(f"{self.demo.origin}/account")

    def issued_key(self):
        """The key on the page, which is shown once."""
        key = self.visitor.text(".issued code")
        self.visitor.expect(key.startswith("sg_live_"), f"the key is {key!r}")
        return key

    def copy(self, button, text):
        """The button puts the text on the clipboard. Without JavaScript there is none."""
        if not self.visitor.script:
            shown = self.visitor.value("document.querySelectorAll('[data-copy]:not([hidden])').length")
            self.visitor.expect(shown == 0, "there is a button that does nothing")
            return
        self.visitor.allow_clipboard(self.demo.origin)
        self.visitor.click("button", button)
        copied = self.visitor.value("navigator.clipboard.readText()")
        self.visitor.expect(copied == text.strip(), f"{copied!r} is copied instead of {text!r}")

    def enter_unusable_website(self):
        self.fill_in("ftp://dashboard.example")
        self.check("The website", status=422)
        is_marked = self.visitor.value("!!document.querySelector('#field-url[aria-invalid=true][aria-describedby~=problem]')")
        self.visitor.expect(is_marked, "the field is not marked")
        self.visitor.go(f"{self.demo.origin}/account")

    def fill_in(self, url):
        self.visitor.type("#field-name", NAME)
        self.visitor.type("#field-url", url)
        self.visitor.follow("button", "Create application")

    def create_application(self):
        self.fill_in("https://dashboard.example")
        self.check("Copy the key now", NAME)
        self.first, self.command = self.issued_key(), self.visitor.text(".example pre")
        self.copy("Copy the key", self.first)
        self.copy("Copy the command", self.command)
        self.visitor.expect(self.first in self.command, f"the command is {self.command}")

    def use_key(self):
        # The command of the page as it is: a Free application has one request a minute.
        status, body = self.demo.run(self.command)
        self.visitor.expect(status == 200 and json.loads(body)["success"], f"the command returns {status}: {body[:200]}")
        status, body = self.demo.run(self.command)
        self.visitor.expect(status == 429, f"the command then returns {status}: {body[:200]}")
        self.visitor.follow("a.button", "I have copied the key")
        self.application = self.visitor.value("location.href")
        self.check(NAME, "1 of 10 requests", "1 of 1 requests", self.first[:12])
        source = self.visitor.value("document.documentElement.outerHTML")
        self.visitor.expect(self.first not in source, "the key is shown again")

    def add_key(self):
        """Another key changes nothing for the first one."""
        self.visitor.type("#field-key_name", "Station")
        self.visitor.follow("button", "Add a key")
        added = self.issued_key()
        self.visitor.follow("a.button", "I have copied the key")
        self.check("Station", added[:12])
        self.visitor.expect("expires" not in self.visitor.text("table"), "a key expires")

    def rotate(self):
        self.visitor.click("summary", "Replace all keys")
        self.visitor.value("document.getElementById('field-overlap').focus()")
        self.visitor.press("ArrowUp")
        chosen = self.visitor.value("document.getElementById('field-overlap').selectedOptions[0].textContent")
        self.visitor.expect(chosen == "expire in 1 hour", f"the overlap is {chosen}")
        self.visitor.click("#field-replace")
        self.visitor.follow("details[open] button", "Replace all keys")
        self.check("The older keys work until")
        self.second = self.issued_key()
        self.visitor.follow("a.button", "I have copied the key")
        self.check(self.second[:12], "expires", "Cancel expiry")
        self.expect_status(200, self.first, self.second)

    def expect_status(self, expected, *keys):
        for key in keys:
            status = self.demo.status(key)
            self.visitor.expect(status == expected, f"the status with {key[:12]} is {status} and not {expected}")

    def pass_overlap(self):
        """The demo continues an hour later. Then the page also has the requests."""
        self.demo.restart(LATER)
        self.expect_status(401, self.first)
        self.expect_status(200, self.second)
        self.visitor.go(self.application)
        self.check("expired", "Requests in the last 30 days", "3 successful", "1 refused")
        self.visitor.click("summary", "Requests by endpoint")
        table = self.visitor.text("details[open] table")
        self.visitor.expect("models" in table, f"the requests by endpoint are {table}")
        parts = self.visitor.value("document.querySelectorAll('.plot svg g .part').length")
        self.visitor.expect(parts == 2, f"the chart has {parts} parts instead of 2")

    def ask_to_revoke(self):
        self.visitor.click("summary", "Revoke")
        self.visitor.follow("details[open] button.danger", "Revoke key")

    def revoke(self):
        """Signed in an hour ago: the step asks to sign in again, and changes nothing."""
        self.ask_to_revoke()
        self.check("Sign in again", "Nothing has been changed", self.address, status=403)
        self.expect_status(200, self.second)
        self.visitor.follow("button", "Send the link")
        self.check("Check your email")
        self.open_link()
        self.check("You are signing in as", self.address)
        self.visitor.expect(not self.visitor.text("#field-accept_terms ~ label"), "the terms are asked for again")
        self.visitor.follow("button", "Sign in")
        self.check(NAME, "1 active key")
        self.visitor.follow("a", NAME)
        self.ask_to_revoke()
        self.check("The key is revoked", "No active keys")
        self.expect_status(401, self.second)
        status, body = self.demo.run(self.command.replace(self.first, self.second))
        self.visitor.expect(status == 401, f"the command with the revoked key returns {status}: {body[:200]}")

    def delete(self):
        self.visitor.follow("button", "Add a key")
        third = self.issued_key()
        self.expect_status(200, third)
        self.visitor.follow("nav a", "Account")
        self.visitor.click("summary", "Delete the account")
        self.visitor.click("#field-confirm")
        self.visitor.follow("details[open] button.danger", "Delete the account")
        self.check("The account is deleted", "Sign in or sign up")
        self.expect_status(401, self.first, self.second, third)

    def start_over(self):
        """The address signs up again, as if it had never been there."""
        self.request_link()
        self.open_link()
        self.accept_terms()
        self.visitor.follow("button", "Sign out")
        self.check("You are signed out")

    def run(self):
        for step in (self.sign_up, self.use_link_again, self.enter_unusable_website, self.create_application, self.use_key,
                     self.add_key, self.rotate, self.pass_overlap, self.revoke, self.delete, self.start_over):
            step()

    def sign_up_by_keyboard(self):
        """Only with the keyboard, but for the link of the mail."""
        visitor = self.visitor
        visitor.go(f"{self.demo.origin}/account/sign-in")
        visitor.tab_to("#field-email")
        visitor.write(self.address)
        visitor.tab_to("form .button")
        visitor.opening(lambda: visitor.press("Enter"))
        self.check("Check your email")
        self.open_link()
        visitor.tab_to("#field-accept_terms")
        visitor.press(" ")
        visitor.tab_to("form .button")
        visitor.opening(lambda: visitor.press("Enter"))
        self.check("You have no applications yet")
