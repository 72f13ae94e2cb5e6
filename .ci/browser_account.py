"""Tests accounts in a browser, with the demo: `browser_account.py BROWSER BINARY DIRECTORY`.

A person signs up, creates a key and uses it, rotates and revokes it and deletes the account: at the width of a desktop and of a
phone, and without JavaScript. The form to sign up is also used by the keyboard alone. The owner of an Enterprise key accepts an
invitation, gets a notice and downloads the usage of a month. All pages that are opened are inspected
(see browser_findings.py), and so are the landing page, the docs and the status page. Planted pages first show that inspections
find something. `--pictures DIR` also makes the pictures of the README (see browser_pictures.py).
"""

import argparse
import http.server
import signal
import threading

from browser_customer import Customer
from browser_demo import Demo
from browser_findings import KINDS, Inspector, axe_source
from browser_pictures import make_pictures
from browser_scenario import DESKTOP, PHONE, Scenario
from browser_visitor import Failure, Visitor

TIMEOUT = 900  # seconds, for the whole test
# The places of the header and of what is in it, and the marked links.
HEADER = """JSON.stringify([...document.querySelectorAll("body > header, .brand, header nav, #search")].map((one) => {
    const { left, top, width, height } = one.getBoundingClientRect();
    return [left, top, width, height];
}))"""
MARKED = "document.querySelectorAll('header [aria-current=page]').length"
FORBIDDING = "default-src 'none'; style-src 'unsafe-inline'"
PLANTED = """<!doctype html><title>Planted</title><main><h1>Planted</h1><p style="width: 2000px; color: #999">wide and pale</p>
<img src="//localhost:1/planted"></main><script>
console.error("planted"); localStorage.setItem("planted", "1"); document.cookie = "planted=1";
</script>"""


class Planted(http.server.BaseHTTPRequestHandler):
    """The planted pages: with a policy that forbids all that they do, and without one."""

    def do_GET(self):
        self.send_response(404 if self.path == "/missing" else 200)
        self.send_header("Content-Type", "text/html")
        if self.path == "/forbidden":
            self.send_header("Content-Security-Policy", FORBIDDING)
        self.end_headers()
        self.wfile.write(PLANTED.encode())

    def log_message(self, *_):
        pass


def check_planted(visitor, axe):
    """Each kind of violation is found, and those that a policy prevents are found in the log."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Planted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_port}"
    for path, script, kinds in (("/", True, set(KINDS) - {"status"}), ("/missing", True, {"status", "console"}),
                                ("/forbidden", True, {"accessibility", "width", "console"}),
                                ("/", False, {"accessibility", "width", "request"})):
        visitor.arrive("planted", *PHONE, script=script)
        visitor.go(f"{origin}{path}")
        found = {one.split(":")[0] for one in Inspector(origin, axe).findings(visitor)}
        visitor.expect(kinds <= found, f"the check does not detect {kinds - found} of a planted page")
        visitor.expect(script or "storage" not in found, "a script runs without JavaScript")
        visitor.leave()
    server.shutdown()


def check_public_pages(visitor, demo, inspector):
    for width, height in (DESKTOP, PHONE):
        visitor.arrive(f"{width} pixels", width, height)
        headers = set()
        for path, words in (("/", "API"), ("/docs", "Errors"), ("/status", "Status"), ("/account/sign-in", "Sign in")):
            visitor.go(f"{demo.origin}{path}")
            Scenario(visitor, demo, inspector, "").check(words)
            headers.add(visitor.value(HEADER))
            visitor.expect(visitor.value(MARKED) == 1, "the header does not mark the page")
            visitor.expect(len(headers) == 1, f"the header differs: {headers}")
        visitor.type("#search", "drift")
        visitor.opening(lambda: visitor.press("Enter"))
        Scenario(visitor, demo, inspector, "").check("sections", "/drift/:id")
        visitor.leave()


def run_scenarios(visitor, arguments, axe):
    """All scenarios, each with a demo of its own. Returns the number of inspected pages."""
    pages = 0
    for name, size, script in (("desktop", DESKTOP, True), ("phone", PHONE, True), ("without JavaScript", DESKTOP, False)):
        demo = Demo(arguments.binary, f"{arguments.directory}/{name.replace(' ', '-')}")
        try:
            inspector = Inspector(demo.origin, axe)
            visitor.arrive(name, *size, script=script)
            Scenario(visitor, demo, inspector, "ann@example.org").run()
            visitor.leave()
            if name == "desktop":
                visitor.arrive("keyboard", *size)
                Scenario(visitor, demo, inspector, "keyboard@example.org").sign_up_by_keyboard()
                visitor.leave()
                check_public_pages(visitor, demo, inspector)
                visitor.arrive("customer", *size)
                Customer(visitor, demo, inspector, "press@example.org").run()
                visitor.leave()
            demo.stop()
        finally:
            demo.kill()
        pages += inspector.pages
    return pages


def main(arguments):
    axe, visitor = axe_source(), Visitor(arguments.browser, f"{arguments.directory}/profile")
    try:
        check_planted(visitor, axe)
        if not arguments.only_pictures:
            pages = run_scenarios(visitor, arguments, axe)
            print(f"accounts: {pages} pages inspected, each in light and dark scheme")
        if arguments.pictures:
            offset = f"-{arguments.days}d"
            demo = Demo(arguments.binary, f"{arguments.directory}/pictures", arguments.listen, offset)
            try:
                make_pictures(visitor, demo, Inspector(demo.origin, axe), arguments.pictures, arguments.days)
            finally:
                demo.kill()
    finally:
        visitor.process.kill()
        visitor.process.wait()


def read_arguments():
    parser = argparse.ArgumentParser()
    for name in ("browser", "binary", "directory"):
        parser.add_argument(name)
    parser.add_argument("--pictures", metavar="DIR", help="where pictures are written")
    parser.add_argument("--only-pictures", action="store_true", help="run no scenario without pictures")
    parser.add_argument("--days", type=int, default=29, help="days before today with use in the pictures")
    parser.add_argument("--listen", default="127.0.0.1:0", help="the address in the pictures")
    return parser.parse_args()


if __name__ == "__main__":
    def end(*_):
        raise Failure(f"the test took longer than {TIMEOUT} seconds")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(TIMEOUT)
    main(read_arguments())
