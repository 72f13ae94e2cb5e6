# Varnish: keys as one pattern, minute and day by vsthrottle, the body from its memory.
#
# What it cannot: VCL has no tables without a module that Debian does not have, so the keys are one compiled pattern, and a new
# one takes another VCL; counts are in memory alone; a day begins with somebody's first request and not at midnight, and
# when it ends cannot be told; a request counts before it is answered; no max-age that follows the backend's refresh, no form
# for each tier. What it writes to its log in shared memory it writes always.
vcl 4.1;

import std;
import vsthrottle;

backend default {
    .host = "127.0.0.1";
    .port = "@BACKEND_PORT@";
}

sub vcl_recv {
    if (req.http.X-API-Key !~ "^(?:@KEY_PATTERN@)$") {
        return (synth(401));
    }
    if (vsthrottle.is_denied("m" + req.http.X-API-Key, @MINUTE@, 60s)) {
        return (synth(429));
    }
    if (vsthrottle.is_denied("d" + req.http.X-API-Key, @DAY@, 86400s)) {
        return (synth(429));
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_hash {
    hash_data(req.url);
    return (lookup);
}

sub vcl_backend_response {
    set beresp.ttl = 1d;
    set beresp.grace = 7d;
    return (deliver);
}

sub vcl_deliver {
    unset resp.http.Age;
    unset resp.http.Via;
    unset resp.http.X-Varnish;
    unset resp.http.Accept-Ranges;
    set resp.http.Cache-Control = "@CACHE_CONTROL@";
    set resp.http.Cache-Status = "varnish; hit";
    set resp.http.X-RateLimit-Limit = "@DAY@";
    set resp.http.X-RateLimit-Remaining = vsthrottle.remaining("d" + req.http.X-API-Key, @DAY@, 86400s);
    set resp.http.X-RateLimit-Resource = "day";
    set resp.http.RateLimit-Policy = {""minute";q=@MINUTE@;w=60, "day";q=@DAY@;w=86400"};
    set resp.http.RateLimit = {""minute";r="} + vsthrottle.remaining("m" + req.http.X-API-Key, @MINUTE@, 60s)
        + {";t=1, "day";r="} + resp.http.X-RateLimit-Remaining;
    set resp.http.Vary = "Accept-Encoding, Authorization, X-API-Key";
    set resp.http.X-Request-Id = req.xid;
    return (deliver);
}

sub vcl_synth {
    set resp.http.Content-Type = "text/plain";
    return (deliver);
}
