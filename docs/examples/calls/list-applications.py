import base64
import json
import os
from urllib.parse import urlencode
from urllib.request import Request, urlopen

base = os.environ["BASE"]
client = f"{os.environ['CLIENT_ID']}:{os.environ['CLIENT_SECRET']}".encode()


def send(path, authorization, form=None):
    body = urlencode(form).encode() if form else None
    request = Request(base + path, data=body, headers={"Authorization": authorization})
    with urlopen(request) as answer:  # Raises HTTPError for a status from 400.
        return json.load(answer)


token = send(
    "/oauth/token",
    "Basic " + base64.b64encode(client).decode(),
    {"grant_type": "client_credentials", "scope": "applications:read"},
)["access_token"]
for application in send("/api/v1/applications", f"Bearer {token}"):
    print(application["name"])
