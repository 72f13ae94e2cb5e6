import os
import requests
from cachecontrol import CacheControl
from cachecontrol.caches.file_cache import FileCache

session = CacheControl(requests.Session(), cache=FileCache(".scores"))
session.headers["Authorization"] = "Bearer " + os.environ["API_KEY"]

def models():
    response = session.get("BASE_ADDRESS/models")
    response.raise_for_status()
    return response.json()["data"]
