import json, os, time, urllib.error, urllib.request

LONGEST_WAIT = 120  # seconds; do not wait for the next day

def models(attempts=5):
    request = urllib.request.Request(
        "BASE_ADDRESS/models", headers={"Authorization": "Bearer " + os.environ["API_KEY"]}
    )
    for left in reversed(range(attempts)):
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)["data"]
        except urllib.error.HTTPError as error:
            wait = int(error.headers.get("Retry-After", LONGEST_WAIT + 1))
            if left == 0 or error.code not in (429, 503) or wait > LONGEST_WAIT:
                raise
            time.sleep(wait)
