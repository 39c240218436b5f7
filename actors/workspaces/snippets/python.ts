/** Start snippet for Python: Flask with PyJWT. */
export const PYTHON = `# pip install flask "pyjwt[crypto]" requests; load the env block, then: flask --app svc run
import os

import jwt
import requests
from flask import Flask, jsonify, request

ISSUER = os.environ["SVC_ISSUER"]
KEYS = jwt.PyJWKClient(ISSUER + "/.well-known/jwks.json")


def service_token():
    """A token for this application itself (client_credentials)."""
    response = requests.post(
        ISSUER + "/oauth/token",
        data={"grant_type": "client_credentials"},
        auth=(os.environ["SVC_CLIENT_ID"], os.environ["SVC_CLIENT_SECRET"]),
        timeout=10,
    )
    response.raise_for_status()
    return response.json()["access_token"]


def verify_bearer(authorization):
    """The claims of a bearer token meant for this application. Raises for any other."""
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or jwt.get_unverified_header(token).get("typ") != "at+jwt":
        raise jwt.InvalidTokenError("not a bearer access token")
    claims = jwt.decode(
        token,
        KEYS.get_signing_key_from_jwt(token).key,
        algorithms=["ES256", "EdDSA"],
        issuer=ISSUER,
        audience=os.environ["SVC_AUDIENCE"],
        options={"require": ["sub", "exp", "nbf", "tenant_id"]},
    )
    if claims["tenant_id"] != os.environ["SVC_TENANT_ID"]:
        raise jwt.InvalidTokenError("another tenant")
    return claims


app = Flask(__name__)


@app.get("/me")
def me():
    try:
        claims = verify_bearer(request.headers.get("Authorization"))
    except jwt.PyJWTError:
        return jsonify(error="unauthorized"), 401
    return jsonify(sub=claims["sub"], scope=claims.get("scope"))
`
