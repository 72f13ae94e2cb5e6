# openapi-python-client generate --url DESCRIPTION_ADDRESS --meta none --output-path api_client
import os

from api_client import AuthenticatedClient
from api_client.api.models import models
from api_client.models import Error, ModelsPeriod

client = AuthenticatedClient("BASE_ADDRESS", token=os.environ["API_KEY"])
answer = models.sync(client=client, period=ModelsPeriod("24h"))
if isinstance(answer, Error):
    raise SystemExit(f"{answer.code}: {answer.message}")
for model in answer.data:
    print(model.name, model.current_score or "unavailable")
