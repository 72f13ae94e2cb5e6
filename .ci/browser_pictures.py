r"""Makes the pictures of accounts for the README, in the run of browser_account.py: on days before today, an application that was
created at a phone gets use of several kinds. Then its page is opened at a desktop.

To make them again:
rm -rf target/pictures; mkdir target/pictures
python3 .ci/browser_account.py chromium $PWD/target/release/scoregate $PWD/target/pictures --pictures $PWD/docs/pictures \
    --only-pictures --listen 127.0.0.1:8080
"""

import http.client
import random
import subprocess

from browser_scenario import NAME, PHONE, Scenario

SIZE = (1000, 900)
ADDRESS = "ann@example.org"
# Requests with their weights: answered, not changed, refused, unknown.
TARGETS = {"/api/v1/models": 16, "/api/v1/models?period=7d": 6, "/api/v1/providers": 6, "/api/v1/incidents": 4, "/api/v1/alerts": 4,
           "/api/v1/models/no-such-model": 2, "/api/v1/models?period=8d": 1}


def use(demo, key, count, draw):
    """Sends requests. They may fail: the demo starts with documents of a day ago, and its data changes."""
    connection = http.client.HTTPConnection(demo.origin.removeprefix("http://"), timeout=20)
    tags = {}
    for target in draw.choices(list(TARGETS), list(TARGETS.values()), k=count):
        tag = {"If-None-Match": tags[target]} if target in tags and draw.random() < 0.2 else {}
        connection.request("GET", target, headers={"X-API-Key": key, **tag})
        response = connection.getresponse()
        response.read()
        if response.status not in (200, 304, 400, 404, 429, 502):
            raise SystemExit(f"{target}: {response.status}")
        if response.headers["ETag"]:
            tags[target] = response.headers["ETag"]
    connection.close()


def make_pictures(visitor, demo, inspector, pictures, days):
    """Writes the pictures. The demo begins this many days ago, and ends now."""
    scenario, draw = Scenario(visitor, demo, inspector, ADDRESS), random.Random(24)
    visitor.arrive("pictures", *PHONE, scale=2)
    visitor.do("Emulation.setScrollbarsHidden", hidden=True)
    scenario.sign_up()
    scenario.create_application()
    visitor.paint("light")
    visitor.value("scrollTo(0, 0)")
    visitor.picture(f"{pictures}/account-key.png")
    visitor.follow("a.button", "I have copied the key")
    # An operator gives it more requests.
    application = visitor.value("location.pathname").rsplit("/", 1)[1]
    command = [demo.binary, "keys", "set-tier", application, "pro", "--data-dir", f"{demo.directory}/state"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for ago in range(days, -1, -1):
        # More every week, fewer on two days of seven, and sometimes more than the minute allows.
        count = (12 if ago % 7 in (3, 4) else 24) + (days - ago) + draw.randint(0, 8) + 22 * (ago % 11 == 5)
        use(demo, scenario.first, count, draw)
        # At its end, the demo stores the requests. Its data may change in ways that it warns of when days pass in one step.
        demo.stop(may_warn=True)
        demo.start(f"-{ago - 1}d" if ago > 1 else "+0")
    use(demo, scenario.first, 24, draw)
    visitor.resize(*SIZE)
    visitor.go(f"{demo.origin}/account")
    scenario.request_link()
    scenario.open_link()
    visitor.follow("button", "Sign in")
    scenario.check(NAME, "Pro")
    visitor.follow("a", NAME)
    scenario.check("Requests in the last 30 days", "Requests by endpoint")
    visitor.paint("light")
    bottom = visitor.value("document.getElementById('requests-title').closest('section').getBoundingClientRect().bottom")
    visitor.picture(f"{pictures}/account-application.png", height=int(bottom + visitor.value("scrollY")) + 24)
    visitor.leave()
    demo.stop(may_warn=True)
