import os
from hishel import CacheOptions, SqliteStorage
from hishel.httpx import CacheClient

client = CacheClient(
    storage=SqliteStorage(database_path="scores.db"),
    rfc=CacheOptions(shared=False),  # the cache of one application, not of a proxy
    headers={"Authorization": "Bearer " + os.environ["API_KEY"]},
)

def models():
    response = client.get("BASE_ADDRESS/models")
    response.raise_for_status()
    return response.json()["data"]
