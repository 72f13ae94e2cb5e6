import json, os, urllib.request

request = urllib.request.Request(
    "BASE_ADDRESS/models?period=24h",
    headers={"Authorization": "Bearer " + os.environ["API_KEY"]},
)
with urllib.request.urlopen(request) as answer:
    for model in json.load(answer)["data"]:
        print(model["name"], model.get("currentScore", "unavailable"))
