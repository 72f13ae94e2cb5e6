"""Checks of a page that a visitor has opened. Each finding begins with its kind, one of KINDS."""

import glob
import json

KINDS = ("status", "accessibility", "width", "console", "request", "storage", "cookie")
# The rules of each colour scheme: all, and those about colours.
SCHEMES = {"light": "", "dark": ', runOnly: ["color-contrast", "link-in-text-block"]'}
# Elements that can be opened are opened, so that their content is checked too.
AXE = """axe.run(document, {resultTypes: ["violations"]%s}).then((result) => result.violations.map((one) =>
    one.id + ": " + one.nodes.map((node) => node.html.slice(0, 200) + " " + node.failureSummary).join("; ")))"""
OPEN = """(() => {
    window.closedBefore ??= [...document.querySelectorAll("details:not([open])")];
    closedBefore.forEach((one) => one.open = %s);
})()"""
WIDTH = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def axe_source():
    """The script of the accessibility checks, from the package that browser.sh has installed."""
    [file] = glob.glob("target/axe/lib/python*/site-packages/axe_playwright_python/axe.min.js")
    with open(file) as opened:
        return opened.read()


class Inspector:
    """Inspects pages of one origin and counts them."""

    def __init__(self, origin, axe):
        self.origin, self.axe, self.pages, self.audits = origin, axe, 0, 0

    def findings(self, visitor, status=200):
        """What is wrong with the page of a visitor, and with requests and logs since the last inspection."""
        self.pages += 1
        found = [*self.recorded(visitor, status), *self.stored(visitor)]
        for is_open in ("false", "true"):
            visitor.value(OPEN % is_open)
            wide = visitor.value(WIDTH)
            if wide > 0:
                found.append(f"width: the page is {wide} pixels too wide; elements opened: {is_open}")
        # The checks need timers. Scripts of a page that was loaded without them do not run now either.
        visitor.do("Emulation.setScriptExecutionDisabled", value=False)
        visitor.value(f"{self.axe};0")
        for scheme, rules in SCHEMES.items():
            visitor.paint(scheme)
            found += [f"accessibility: {scheme}: {one}" for one in visitor.value(AXE % rules)]
            self.audits += 1
        visitor.do("Emulation.setScriptExecutionDisabled", value=not visitor.script)
        visitor.value(OPEN % "false")
        return [*found, *self.recorded(visitor)]

    def recorded(self, visitor, status=200):
        """Findings of the recorded events, which are then forgotten. The last page has this status, others 200."""
        events, visitor.events = visitor.events, []
        documents = []
        for event in events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded" and is_about_status(params["entry"], status):
                continue
            if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded", "Audits.issueAdded"):
                yield f"console: {json.dumps(params)[:600]}"
            elif method == "Network.responseReceived" and params["type"] == "Document":
                documents.append((params["response"]["url"], params["response"]["status"]))
            elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(f"{self.origin}/"):
                yield f"request: {params['request']['url'][:200]}"
        for number, (url, received) in enumerate(documents, 1):
            expected = status if number == len(documents) else 200
            if received != expected and url.startswith(self.origin):
                yield f"status: {received} and not {expected} from {url}"

    def stored(self, visitor):
        kept = visitor.value("JSON.stringify([localStorage.length, sessionStorage.length])")
        if kept != "[0,0]":
            yield f"storage: {kept} entries in localStorage and sessionStorage"
        for cookie in visitor.do("Network.getCookies")["cookies"]:
            if not cookie["httpOnly"] or cookie.get("sameSite") not in ("Lax", "Strict"):
                yield f"cookie: {cookie}"


def is_about_status(entry, status):
    """Whether a log entry of the browser only reports that a page has this status, which is an error."""
    text = f"Failed to load resource: the server responded with a status of {status} "
    return status != 200 and entry["source"] == "network" and entry["text"].startswith(text)
