"""Tests "Try it" and the search of the docs page in a browser: `browser_try_it.py BROWSER URL PROFILE [PICTURES]`.

The environment has API_KEY, the key of an application with ample limits, and LIMITED_KEY, of one with a request a minute.
Requests are sent from the page and their responses are read there. The programs that the page shows are run too: with
ordinary values against the gateway, with arbitrary values against a server that records what it received.
"""

import http.server
import json
import os
import random
import subprocess
import sys
import threading
import urllib.parse

from browser import SHOWN, Browser, expect, press, save_picture

TIMEOUT = 240  # seconds, for the whole test
KEY, LIMITED_KEY = os.environ["API_KEY"], os.environ["LIMITED_KEY"]
ODD = ["a'b", 'a"b', "$(touch x)", "`id`", "$HOME", "a\\", "a b", "%41", "a&b=c", "a?b#c", "{1,2}", "[1-3]", "é日本😀", "..a", "/../x",
       "a\"); print(1) #", "'; exit 1; '", "${API_KEY}", "*!~()", "</script>", "\u2028"]


class Recorder(http.server.BaseHTTPRequestHandler):
    """Records the targets and keys of requests to the API."""
    received = []

    def do_GET(self):
        if self.path.startswith("/api/"):
            Recorder.received.append((self.path, self.headers["X-API-Key"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


class Form:
    """The form of an operation."""

    def __init__(self, browser, name):
        self.browser, self.name, self.section = browser, name, f"document.getElementById('endpoint-{name}')"
        browser.value(f"{self.section}.querySelector('details.try > summary').focus()")
        press(browser, "Enter")
        self.wait("details.try[open] form")

    def wait(self, selector, text=""):
        """Waits until an element has this text, and returns all of its text."""
        return self.browser.value(f"""new Promise((done, fail) => {{
            const at = () => [...{self.section}.querySelectorAll({json.dumps(selector)})].find(
                (one) => one.textContent.includes({json.dumps(text)}));
            const look = (left) => at() ? done(at().textContent) : left ? setTimeout(look, 25, left - 1)
                : fail(Error({json.dumps(f'{selector} {text}')} + " is missing: " + {self.section}.querySelector(".try").textContent));
            look(400);
        }})""")

    def fill(self, field, text):
        self.browser.value(f"""(() => {{
            const field = document.getElementById('try-{self.name}-{field}');
            field.focus();
            field.value = {json.dumps(text)};
            field.dispatchEvent(new Event('input', {{ bubbles: true }}));
        }})()""")

    def send(self, status):
        """Sends by the keyboard, and waits for the outcome."""
        self.browser.value(f"{self.section}.querySelector('.outcome').textContent = ''")
        self.browser.value(f"{self.section}.querySelector('button[type=submit]').focus()")
        press(self.browser, "Enter")
        return self.wait(".outcome", status)

    def snippet(self, language):
        return self.browser.value(
            f"{self.section}.querySelector('pre[aria-label^=\"{language} for\"]').textContent")

    def text(self, selector):
        return self.browser.value(f"{self.section}.querySelector({json.dumps(selector)})?.textContent ?? ''")


def check_requests(browser, pictures):
    models = Form(browser, "models")
    models.fill("key", KEY)
    models.fill("period", "7d")
    outcome = models.send("200")
    expect("200 OK in" in outcome and "bytes" in outcome, f"the outcome is {outcome}")
    limits = models.text(".limits")
    expect("Minute: " in limits and "Day: 99,999,999 of 100,000,000 requests left; full again in" in limits, f"the limits are {limits}")
    headers = models.text(".result details")
    for name in ("etag", "ratelimit", "Identifies these exact bytes"):
        expect(name in headers, f"{name} is not among the headers: {headers}")
    body = models.text(".result pre")
    expect(json.loads(body)["success"] and "\n  " in body, f"the body is {body[:200]}")
    expect(json.loads(body)["period"] == "7d", f"the period of the response is {json.loads(body)['period']}")
    if pictures:
        save_picture(browser, f"{pictures}-try", "endpoint-models")
    # The key is shared by all forms, and the ids of the list are suggested.
    ids = browser.value("[...document.querySelectorAll('#model-ids option')].map((one) => one.value)")
    expect(ids == [item["id"] for item in json.loads(body)["data"]], f"the suggested ids are {ids}")
    model = Form(browser, "model")
    model.fill("id", ids[0])
    model.send("200")
    expect(json.loads(model.text(".result pre"))["data"][0]["id"] == ids[0], "the response is about another model")
    model.fill("id", "no-such-model")
    model.send("404")
    expect("model_not_found" in model.text(".result"), "the code of the error is not explained")
    model.fill("id", "..")
    valid = browser.value("document.getElementById('try-model-id').checkValidity()")
    expect(not valid, "an id that changes the path is accepted")
    # A wrong key, no key, and a text that is no key.
    for key, words in (("sg_live_wrong", "invalid_api_key"), ("", "api_key_required")):
        models.fill("key", key)
        models.send("401")
        expect(words in models.text(".result") and "Remedy" not in models.text(".result > p"), f"{words} is not explained")
        expect("Guard:" in models.text(".limits"), "the guard is not explained")
    models.fill("key", "two words")
    models.send("Not sent")
    # One request a minute: the second one is refused, and the page says until when.
    incidents = Form(browser, "incidents")
    incidents.fill("key", LIMITED_KEY)
    incidents.send("200")
    incidents.fill("limit", "7")
    incidents.send("429")
    explained = incidents.text(".result")
    for words in ("rate_limit_exceeded", "The limit of the minute is used up. Wait", "Minute: 0 of 1 request left; full again in"):
        expect(words in explained, f"{words} is not in {explained[:600]}")
    if pictures:
        save_picture(browser, f"{pictures}-429", "endpoint-incidents")
    browser.value("document.querySelector('#endpoint-models .try .copy').click()")
    # Nothing outlives the page.
    kept = browser.value("JSON.stringify([localStorage.length, sessionStorage.length, document.cookie, location.search])")
    expect(kept == '[0,0,"",""]', f"the page has stored {kept}")
    expect(KEY not in browser.value("document.documentElement.outerHTML"), "the key is in the document")
    browser.value("dispatchEvent(new PageTransitionEvent('pagehide'))")
    left = browser.value("[...document.querySelectorAll('input[type=password]')].map((one) => one.value).join('')")
    expect(left == "", "the key is not removed when the page is left")
    return models


def check_copy(browser, models):
    for language in ("curl", "Python", "JavaScript"):
        browser.value(f"{models.section}.querySelector('input[value={language}]').click()")
        browser.value(f"""(async () => {{
            const button = {models.section}.querySelector('[aria-label^="Copy: {language} for"]');
            button.click();
            await new Promise((done) => setTimeout(done, 200));
        }})()""")
        copied = browser.value("navigator.clipboard.readText()")
        expect(copied == models.snippet(language) and "API_KEY" in copied, f"{language} is copied as {copied}")


def run_snippet(browser, language, text, origin, key):
    """Runs a program from the page with its origin replaced, and returns its output. That of JavaScript runs in the browser."""
    environment = {**os.environ, "API_KEY": key}
    if language == "JavaScript":
        script = f"""(async () => {{
            const process = {{ env: {{ API_KEY: {json.dumps(key)} }} }}, lines = [];
            const console = {{ log: (...all) => lines.push(...all.map((one) => JSON.stringify(one))) }};
            {text}
            return lines.join(" ");
        }})()"""
        return browser.value(script)
    program = ["bash", "-euc", text] if language == "curl" else [sys.executable, "-c", text]
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=True, timeout=20).stdout


def check_snippets(browser, origin):
    """Ordinary values: the programs print what the page shows. Arbitrary values: the server receives them unchanged."""
    history = Form(browser, "history")
    history.fill("id", "no-such-model")
    for language in ("curl", "Python", "JavaScript"):
        expect(KEY not in history.snippet(language), f"the {language} program contains the key")
        output = run_snippet(browser, language, history.snippet(language), origin, KEY)
        expect("model_not_found" in output, f"the {language} program prints {output}")
    draw = random.Random(24)
    alphabet = "ab0-._~ '\"`$\\(){}[]<>|&;*?!#%=+,:@/\té😀"
    values = ODD + ["".join(draw.choices(alphabet, k=draw.randint(1, 12))) for _ in range(20)]
    values = [value for value in values if value not in (".", "..")]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    recorder = f"http://127.0.0.1:{server.server_port}"
    programs = []
    for value in values:
        history.fill("id", value)
        history.fill("period", "7d")
        programs.append({language: history.snippet(language) for language in ("curl", "Python", "JavaScript")})
    # The policy of the docs page forbids requests to another origin.
    browser.open(f"{recorder}/", 800, 600, "light")
    for value, texts in zip(values, programs):
        expected = f"/api/v1/models/{urllib.parse.quote(value, safe='')}/history?period=7d"
        for language, text in texts.items():
            Recorder.received.clear()
            expect(origin in text, f"the {language} program does not request {origin}: {text}")
            run_snippet(browser, language, text.replace(origin, recorder), recorder, "k'e$y")
            expect(Recorder.received == [(expected, "k'e$y")],
                   f"{language} for {value!r}: received {Recorder.received}, expected {expected}\n{text}")
    server.shutdown()
    return len(values)


def check_search(browser):
    """The search finds operations, fields, error codes and what is not available by name, and leads to them."""
    for text, hit, section in (("/drift", "Endpoint /api/v1/drift/:id", "endpoint-drift"),
                               ("confidencelow", "Field confidenceLower of /api/v1/models", "endpoint-models"),
                               ("quota_ex", "Error quota_exceeded", "quota_exceeded"),
                               ("sortby", "Parameter sortBy of /api/v1/models", "endpoint-models"),
                               ("retry-a", "Header Retry-After", "headers"),
                               ("csv", "Not available: CSV", "not-available"),
                               ("pagination", "Not available: Pagination", "not-available")):
        browser.value("document.getElementById('search').focus()")
        press(browser, "Escape")
        browser.do("Input.insertText", text=text)
        hits = browser.value("[...document.querySelectorAll('.hits a')].map((one) => one.textContent)")
        expect(hit in hits, f"the search for {text} finds {hits}")
        expect(section in browser.value(SHOWN), f"the search for {text} hides {section}")
        browser.value(f"[...document.querySelectorAll('.hits a')].find((one) => one.textContent === {json.dumps(hit)}).click()")
        seen = browser.value("""new Promise((done) => setTimeout(() => {
            const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
            const box = target.getBoundingClientRect();
            done(box.bottom > 0 && box.top < innerHeight);
        }, 100))""")
        expect(seen, f"the link to {hit} does not lead there")


def check_attacks(browser):
    """A response is shown as text."""
    shown = browser.value("""(async () => {
        const real = window.fetch;
        window.fetch = async () => new Response('{"code":"<img src=x onerror=alert(1)>","x":["<b>",1.50,{},[],"' + 'y'.repeat(30000) + '"]}',
            { status: 400, headers: { "content-type": "application/json", "x-odd": "<i>", "retry-after": "<b>" } });
        const part = document.getElementById('endpoint-alerts');
        part.querySelector('.try').open = true;
        await new Promise((done) => setTimeout(done, 100));
        part.querySelector('.try form').requestSubmit();
        await new Promise((done) => setTimeout(done, 200));
        window.fetch = real;
        return [part.querySelectorAll('.try img, .try b, .try i').length, part.querySelector('.result').textContent];
    })()""")
    expect(shown[0] == 0 and "<img src=x" in shown[1], f"markup of a response is not text: {shown}")
    expect("1.50,\n    {},\n    []," in shown[1], "the tokens of a body have changed")
    expect("The first 20,000 of 30," in shown[1], "a large body is not cut")


def main(program, url, profile, pictures=None):
    browser = Browser(program, profile)
    origin = url.removesuffix("/docs")
    try:
        browser.do("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        browser.open(url, 1280, 900, "light")
        models = check_requests(browser, f"{pictures}/1280-light" if pictures else None)
        check_copy(browser, models)
        check_attacks(browser)
        check_search(browser)
        if pictures:
            save_picture(browser, f"{pictures}/1280-light-search", "search")
            for width, scheme in ((1280, "dark"), (390, "light"), (390, "dark")):
                browser.open(url, width, 900, scheme)
                Form(browser, "models").fill("key", KEY)
                models = Form(browser, "history")
                models.fill("id", "no-such-model")
                models.send("404")
                wide = browser.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                expect(wide <= 0, f"the form makes the page {wide} pixels too wide")
                save_picture(browser, f"{pictures}/{width}-{scheme}-try", "endpoint-history")
                save_picture(browser, f"{pictures}/{width}-{scheme}-programs", "try-history-languages")
                browser.value("document.getElementById('search').focus()")
                browser.do("Input.insertText", text="score")
                save_picture(browser, f"{pictures}/{width}-{scheme}-search", "search")
        browser.open(url, 390, 844, "dark")
        count = check_snippets(browser, origin)
        print(f"requests of the page and its programs: {count} arbitrary values in 3 languages")
    finally:
        browser.process.kill()
        browser.process.wait()


if __name__ == "__main__":
    import signal

    signal.alarm(TIMEOUT)
    main(*sys.argv[1:])
