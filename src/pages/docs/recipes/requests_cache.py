import os
from requests_cache import CachedSession

# The responses vary with the key, so the library must not ignore it. The cache file then contains the key.
session = CachedSession("scores", cache_control=True, ignored_parameters=[])
session.headers["Authorization"] = "Bearer " + os.environ["API_KEY"]

def models():
    response = session.get("BASE_ADDRESS/models")
    response.raise_for_status()
    return response.json()["data"]
