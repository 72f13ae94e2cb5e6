#!/usr/bin/env python3
"""A backend with a list of models and three endpoints that the gateway knows from its settings only: `stub_backend.py`.

It prints its port, and answers requests of loopback until it is killed. Every other request gets 404.
"""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PRICE = {"modelId": "{id}", "input": 2.5, "margin": 0.31, "internal": True,
         "discounts": [{"from": 1_000_000, "rebate": 0.1}]}
ANSWERS = {
    r"/api/v1/models\?.*": [{"id": "atlas-4-large", "name": "Atlas 4 Large", "provider": "north", "currentScore": 81.5}],
    r"/api/v1/prices/(?P<id>atlas-4-large)\?period=[a-z0-9]+&currency=(eur|usd)": [PRICE],
    r"/api/v1/reference/regions\?limit=[0-9]+": [{"region": "eu", "since": "2026-11-21T12:00:00Z"}, {"region": "us"}],
    r"/api/v1/reference/licences": [{"name": "MIT", "permits": ["use", "change"], "score": "unavailable"}],
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        found = ((re.fullmatch(path, self.path), data) for path, data in ANSWERS.items())
        found = next(((match, data) for match, data in found if match), None)
        body = {"success": False, "error": "no such model"}
        if found:
            match, data = found
            text = json.dumps(data).replace("{id}", match.groupdict().get("id") or "")
            body = {"success": True, "generated_at": "2026-11-21T12:00:00Z", "data": json.loads(text)}
        body = json.dumps(body).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
