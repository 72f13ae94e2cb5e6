"""Models of datamodel-code-generator: `models.py BASE_ADDRESS DESCRIPTION`.

`api_models` is the module that it made from the description. Each endpoint's response of a running gateway is a value of
its model, and so is every example of an error. The environment has PRO_KEY.
"""

import json
import os
import sys

import api_models
import httpx


def type_name(operation):
    return "".join(word.capitalize() for word in operation.split("_"))


def main(base, path):
    with open(path, encoding="utf-8") as file:
        description = json.load(file)
    with httpx.Client(headers={"X-API-Key": os.environ["PRO_KEY"]}) as client:
        model = client.get(f"{base}/models").json()["data"][0]["id"]
        for path, item in description["paths"].items():
            answer = client.get(base + path.replace("{id}", model))
            assert answer.status_code == 200, (path, answer.text)
            name = f"{type_name(item['get']['operationId'])}Answer"
            read = getattr(api_models, name).model_validate_json(answer.content)
            assert read.success and read.count == len(read.data), (path, read)
    codes = set()
    for response in description["components"]["responses"].values():
        for code, example in response.get("content", {}).get("application/json", {}).get("examples", {}).items():
            error = api_models.Error.model_validate(example["value"])
            assert error.code.value == code and (error.limit is not None) == (error.status == 429), error
            codes.add(code)
    assert codes == {code.value for code in api_models.Code} - {"invalid_parameter", "method_not_allowed"}, codes
    print(f"{len(description['paths'])} responses and {len(codes)} errors are values of the models")


main(*sys.argv[1:])
