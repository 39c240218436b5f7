"""A FastAPI application that accepts access tokens of svc, and receives its webhooks.

    ISSUER=http://localhost:8080 AUDIENCE=urn:svc:application:... TENANT_ID=... WEBHOOK_SECRET=... \\
      PYTHONPATH=../clients/python uvicorn app:app --port 3000
"""

import os

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from svc_client import (
    InsufficientScope,
    InvalidToken,
    InvalidWebhook,
    TokenVerifier,
    Unavailable,
    verify_token,
    verify_webhook,
)

verifier = TokenVerifier(
    issuer=os.environ["ISSUER"],
    audience=os.environ["AUDIENCE"],
    tenant_id=os.environ["TENANT_ID"],
)
WEBHOOK_SECRET = os.environ["WEBHOOK_SECRET"]
SCOPE = "applications:read"

app = FastAPI()
bearer = HTTPBearer(auto_error=False)


# Not `async`: FastAPI runs it on a thread, because the keys may have to be fetched.
def caller(credentials: HTTPAuthorizationCredentials = Depends(bearer)) -> dict:
    """The claims of a valid access token."""
    if credentials is None:
        raise HTTPException(401, headers={"WWW-Authenticate": "Bearer"})
    try:
        return verify_token(credentials.credentials, verifier, scopes=(SCOPE,))
    except InvalidToken:
        raise HTTPException(401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
    except InsufficientScope:
        challenge = f'Bearer error="insufficient_scope", scope="{SCOPE}"'
        raise HTTPException(403, headers={"WWW-Authenticate": challenge})
    except Unavailable:
        raise HTTPException(503, headers={"Retry-After": "1"})


@app.get("/me")
def me(claims: dict = Depends(caller)) -> dict:
    return {"subject": claims["sub"], "subject_type": claims.get("subject_type")}


#: Deliveries that were processed. A real receiver stores the id in the transaction of the effect.
seen = set()


@app.post("/webhooks")
async def webhooks(request: Request) -> Response:
    # The signature is of the bytes, so the body is not declared as a model.
    body = await request.body()
    try:
        delivery = verify_webhook(dict(request.headers), body, WEBHOOK_SECRET)
    except InvalidWebhook:
        return Response(status_code=400)
    if delivery.delivery_id not in seen:
        print(f"event {delivery.event_type}", flush=True)
    seen.add(delivery.delivery_id)
    return Response(status_code=200)
