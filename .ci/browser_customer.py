"""What the owner of an Enterprise key does, which an operator created for an address."""

import datetime
import os

from browser_demo import wait_for
from browser_scenario import Scenario

NAME = "Press desk"
QUOTA = 10


class Customer(Scenario):
    """A person who has an address only, until an invitation arrives."""

    def receive_key(self):
        created = self.demo.operate("keys", "create", "--name", NAME, "--tier", "enterprise", "--day", str(QUOTA),
                                    "--owner", self.address)
        self.id, self.key = created["application"]["id"], created["key"]

    def accept_invitation(self):
        self.open_link()
        self.check("Create your account", self.address, "Stop all mail to this address")
        self.visitor.click("#field-accept_terms")
        self.visitor.follow("button", "Create account")
        self.check("Your account", self.address, NAME)

    def use_eighty_percent(self):
        for _ in range(QUOTA * 8 // 10):
            status = self.demo.status(self.key, "/api/v1/models")
            self.visitor.expect(status == 200, f"the status is {status}")
        self.visitor.follow("a", NAME)
        self.check(NAME, f"8 of {QUOTA} requests", self.key[:12])

    def get_notice(self):
        """Use is recorded each minute, and then the notices are queued."""
        mail, text, _ = self.demo.next_message(seconds=130)
        self.visitor.expect(mail["to"] == self.address, f"the notice is to {mail['to']}")
        self.visitor.expect("80 %" in mail["subject"] + text and self.id in text, f"the notice is {mail['subject']}: {text}")

    def download_month(self):
        """No day of the month is closed, as the name of the file says. The test of the usage of months has closed days."""
        self.visitor.go(f"{self.demo.origin}/account")
        self.visitor.save_downloads(self.demo.directory)
        month = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m}"
        self.visitor.type("#month", month)
        self.visitor.click("form[action='/account/usage'] button")
        file = f"{self.demo.directory}/usage-{month}-not-closed.csv"
        wait_for(lambda: os.path.exists(file), "nothing was downloaded")
        with open(file) as opened:
            text = opened.read()
        self.visitor.expect(text == "account,application,day,id,tier,units\n", f"the usage is {text}")

    def run(self):
        for step in (self.receive_key, self.accept_invitation, self.use_eighty_percent, self.get_notice, self.download_month):
            step()
