"""An SMTP server for tests, on a free port of 127.0.0.1. It ends with its standard input.

Writes one JSON object per line to standard output: {"event": "listening", "port": ...}, {"event": "mail", ...} for each
message that it accepts or has received when it drops the connection, and an event for each other act.

Each mail takes the next act of `--acts`, and `accept` after the last one:

    accept          accepts it
    defer           450 to the recipient, with the address in the text
    refuse          550 to the recipient, with the address in the text
    deny_relay      554 to the recipient: a policy of the server, which is not about the recipient
    refuse_sender   550 to the sender
    refuse_content  554 to the content
    end             421 to the sender, and closes the connection
    stall           no reply to the sender
    drop            closes the connection after the content, without a reply
    hold            replies to the content after a line on standard input
"""

import argparse
import asyncio
import itertools
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult


# Failed handshakes and missing TLS are what tests are about.
logging.disable(logging.CRITICAL)
warnings.simplefilter("ignore")


REPLIES_TO_RECIPIENT = {
    "defer": "450 4.2.1 <{}>: not now",
    "refuse": "550 5.1.1 <{}>: not now",
    "deny_relay": "554 5.7.1 <{}>: Relay access denied",
}


def report(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Handler:
    def __init__(self, acts):
        self.acts = iter(acts)
        self.released = asyncio.Event()

    async def handle_MAIL(self, server, session, envelope, address, options):
        session.act = next(self.acts, "accept")
        if session.act == "stall":
            report("stall")
            await asyncio.Event().wait()
        if session.act == "end":
            report("end")
            asyncio.get_running_loop().call_soon(server.transport.close)
            return "421 4.7.0 too many messages"
        if session.act == "refuse_sender":
            report("refuse_sender")
            return "550 5.7.1 sender refused"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if session.act in REPLIES_TO_RECIPIENT:
            report(session.act)
            return REPLIES_TO_RECIPIENT[session.act].format(address)
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server, session, envelope):
        if session.act == "refuse_content":
            report("refuse_content")
            return f"554 5.6.0 message for <{envelope.rcpt_tos[0]}> refused"
        report(
            "mail",
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            content=envelope.content.decode("utf-8"),
            tls=server.transport.get_extra_info("sslcontext") is not None,
            user=session.auth_data.decode() if session.authenticated else None,
            client=session.host_name,
            connection=server.number,
        )
        if session.act == "drop":
            server.transport.abort()
        if session.act == "hold":
            await self.released.wait()
        return "250 2.0.0 OK"


async def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tls", choices=["none", "starttls", "implicit"], default="none")
    options.add_argument("--certificate")
    options.add_argument("--key")
    options.add_argument("--user")
    options.add_argument("--password")
    options.add_argument("--acts", default="")
    options = options.parse_args()
    context = None
    if options.tls != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
    handler = Handler(options.acts.split(",") if options.acts else [])

    def authenticate(server, session, envelope, mechanism, data):
        is_valid = (data.login.decode(), data.password.decode()) == (options.user, options.password)
        report("login" if is_valid else "bad_login")
        return AuthResult(success=is_valid, handled=False, auth_data=data.login if is_valid else None)

    numbers = itertools.count()

    def connection():
        smtp = SMTP(
            handler,
            hostname="localhost",
            enable_SMTPUTF8=True,
            timeout=3600,
            tls_context=context if options.tls == "starttls" else None,
            require_starttls=options.tls == "starttls",
            auth_required=options.user is not None,
            # The library does not know about TLS from the beginning.
            auth_require_tls=options.tls == "starttls",
            authenticator=authenticate,
        )
        smtp.number = next(numbers)
        return smtp

    loop = asyncio.get_running_loop()
    implicit = context if options.tls == "implicit" else None
    server = await loop.create_server(connection, "127.0.0.1", 0, ssl=implicit)
    report("listening", port=server.sockets[0].getsockname()[1])
    while await loop.run_in_executor(None, sys.stdin.readline):
        handler.released.set()


try:
    asyncio.run(main())
except KeyboardInterrupt:
    pass
