"""Client of svc: access tokens, webhooks, egress and agents.

Needs Python 3.9 and the package `cryptography`. The whole client is this file.

    verify_token(token, verifier)        an access token of a request to your API
    verify_webhook(headers, body, secret) a delivery to your webhook receiver
    Egress(...).request(method, url)     a call with a credential of the vault
    AgentKey, create_workspace, register_agent, AgentSession   an agent's identity and tokens
"""

import base64
import hashlib
import hmac
import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

TIMEOUT_SECS = 30
ANSWER_BYTES_MAX = 16 * 1024 * 1024


class ServiceRefusal(Exception):
    """The service refused a request: a problem document (RFC 9457) or an OAuth error."""

    def __init__(self, status: int, body: Any, headers: Mapping[str, str]):
        members = body if isinstance(body, dict) else {}
        self.status = status
        self.code = members.get("error", "unknown")
        self.detail = members.get("detail") or members.get("error_description") or ""
        self.request_id = headers.get("x-request-id")
        retry_after = headers.get("retry-after", "")
        self.retry_after_secs = int(retry_after) if retry_after.isdigit() else None
        super().__init__(f"{self.detail} ({status} {self.code})")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args):
        return None


_opener = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True)
class Answer:
    status: int
    #: By lower-case name.
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def _send(method: str, url: str, headers: Mapping[str, str], body: Optional[bytes]) -> Answer:
    request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
    try:
        response = _opener.open(request, timeout=TIMEOUT_SECS)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        content = response.read(ANSWER_BYTES_MAX + 1)
        if len(content) > ANSWER_BYTES_MAX:
            raise ValueError("the answer is too long")
        names = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, names, content)


def _call(method: str, url: str, expected: int, token: Optional[str] = None, value: Any = None) -> Any:
    headers = {"accept": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    body = None
    if value is not None:
        headers["content-type"] = "application/json"
        body = json.dumps(value).encode()
    answer = _send(method, url, headers, body)
    is_json = "json" in answer.headers.get("content-type", "")
    parsed = answer.json() if is_json and answer.body else None
    if answer.status != expected:
        raise ServiceRefusal(answer.status, parsed, answer.headers)
    return parsed


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    if not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise ValueError("not base64url")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# Access tokens


class InvalidToken(Exception):
    """The access token is refused: answer 401."""


class InsufficientScope(Exception):
    """The access token is valid and lacks a scope: answer 403."""


class Unavailable(Exception):
    """The keys or the status list cannot be fetched: answer 503."""


class _Cached:
    """A document that is fetched on demand. While it cannot be refreshed, it is used for an hour more."""

    def __init__(self, load: Callable[[], Any], fresh_secs: float, pause_secs: float):
        self._load, self._fresh_secs, self._pause_secs = load, fresh_secs, pause_secs
        self._lock = threading.Lock()
        self._value: Any = None
        self._loaded_at = self._tried_at = float("-inf")

    def get(self, again: bool = False) -> Any:
        with self._lock:
            now = time.monotonic()
            if self._value is not None and not again and now - self._loaded_at < self._fresh_secs:
                return self._value
            # The pause keeps tokens with invented key ids from causing load.
            if now - self._tried_at >= self._pause_secs:
                self._tried_at = now
                try:
                    self._value = self._load()
                    self._loaded_at = time.monotonic()
                    return self._value
                except (OSError, ValueError, http.client.HTTPException):
                    pass
            if self._value is None or now - self._loaded_at > self._fresh_secs + 3600:
                raise Unavailable("a document of the issuer could not be fetched")
            return self._value


def _document(url: str, accept: str) -> Answer:
    answer = _send("GET", url, {"accept": accept}, None)
    if answer.status != 200:
        raise OSError(f"{url} answered {answer.status}")
    return answer


@dataclass
class TokenVerifier:
    """What tokens are accepted. Keep one object: it caches the keys of the issuer."""

    issuer: str
    #: The value that `aud` must contain.
    audience: str
    tenant_id: Optional[str] = None
    tolerance_secs: int = 10
    _lists: Dict[str, _Cached] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._keys = _Cached(self._load_keys, 300, 5)

    def _load_keys(self) -> Dict[str, Any]:
        parts = urllib.parse.urlsplit(self.issuer)
        well_known = f"/.well-known/oauth-authorization-server{parts.path.rstrip('/')}"
        metadata_url = urllib.parse.urlunsplit((parts.scheme, parts.netloc, well_known, "", ""))
        metadata = _document(metadata_url, "application/json").json()
        if metadata.get("issuer") != self.issuer:
            raise ValueError("the metadata is of another issuer")
        keys = _document(metadata["jwks_uri"], "application/json").json()["keys"]
        return {key["kid"]: key for key in keys if "kid" in key}

    def _signed(self, token: str, kind: str) -> Dict[str, Any]:
        """The claims of a JWT of the issuer."""
        try:
            head, payload, signature = token.split(".")
            header = json.loads(_unb64(head))
            claims = json.loads(_unb64(payload))
            mac = _unb64(signature)
        except ValueError:
            raise InvalidToken("It is not a JWT.") from None
        if not isinstance(header, dict) or not isinstance(claims, dict) or "crit" in header:
            raise InvalidToken("It is not a JWT of this issuer.")
        if str(header.get("typ", "")).lower().removeprefix("application/") != kind:
            raise InvalidToken("It is a JWT of another type.")
        kid = header.get("kid")
        key = self._keys.get().get(kid) or self._keys.get(again=True).get(kid)
        if key is None or not _verifies(key, header.get("alg"), f"{head}.{payload}".encode(), mac):
            raise InvalidToken("The signature is not valid.")
        return claims

    def _revoked(self, status: Any) -> bool:
        try:
            reference = status["status_list"]
            index, uri = reference["idx"], reference["uri"]
            origin = urllib.parse.urlsplit(uri)[:2]
        except (KeyError, TypeError, ValueError):
            raise InvalidToken("The status is not readable.") from None
        # No token may make this program call an address of its choice.
        if origin != urllib.parse.urlsplit(self.issuer)[:2] or not isinstance(index, int) or index < 0:
            raise Unavailable("the status list is at another origin")
        if uri not in self._lists and len(self._lists) >= 100:
            self._lists.pop(next(iter(self._lists)))
        loaded = self._lists.setdefault(uri, _Cached(lambda: self._load_list(uri), 60, 1))
        bits, data = loaded.get()
        at = index * bits
        if at // 8 >= len(data):
            raise InvalidToken("The status is not readable.")
        return (data[at // 8] >> (at % 8)) & ((1 << bits) - 1) != 0

    def _load_list(self, uri: str) -> Tuple[int, bytes]:
        import zlib

        text = _document(uri, "application/statuslist+jwt").body.decode()
        claims = self._signed(text, "statuslist+jwt")
        entry = claims["status_list"]
        if claims.get("sub") != uri or entry["bits"] not in (1, 2, 4, 8):
            raise ValueError("the status list is of another address")
        inflater = zlib.decompressobj()
        data = inflater.decompress(_unb64(entry["lst"]), 512 * 1024)
        if inflater.unconsumed_tail:
            raise ValueError("the status list is too long")
        return entry["bits"], data


def _verifies(key: Mapping[str, Any], algorithm: Any, signed: bytes, mac: bytes) -> bool:
    try:
        if algorithm == "ES256" and key.get("kty") == "EC" and key.get("crv") == "P-256" and len(mac) == 64:
            x, y = (int.from_bytes(_unb64(key[name]), "big") for name in ("x", "y"))
            public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
            pair = (int.from_bytes(mac[:32], "big"), int.from_bytes(mac[32:], "big"))
            public.verify(encode_dss_signature(*pair), signed, ec.ECDSA(hashes.SHA256()))
            return True
        if algorithm in ("EdDSA", "Ed25519") and key.get("crv") == "Ed25519":
            ed25519.Ed25519PublicKey.from_public_bytes(_unb64(key["x"])).verify(mac, signed)
            return True
    except (InvalidSignature, KeyError, ValueError):
        pass
    return False


def verify_token(token: str, verifier: TokenVerifier, scopes: Tuple[str, ...] = ()) -> Dict[str, Any]:
    """The claims of a valid access token (RFC 9068). The key of a user is (`tenant_id`, `sub`), never an email address.

    Raises InvalidToken (401), InsufficientScope (403), Unavailable (503). A token that is bound to a key is refused,
    because this function sees no DPoP proof.
    """
    if len(token) > 16_384:
        raise InvalidToken("The access token is too long.")
    claims = verifier._signed(token, "at+jwt")
    now = time.time()
    audience = claims.get("aud")
    if claims.get("iss") != verifier.issuer:
        raise InvalidToken("It is of another issuer.")
    if verifier.audience not in (audience if isinstance(audience, list) else [audience]):
        raise InvalidToken("It is for another audience.")
    if not all(isinstance(claims.get(name), (int, float)) for name in ("exp", "iat")):
        raise InvalidToken("It has no exp or iat.")
    if claims["exp"] <= now - verifier.tolerance_secs:
        raise InvalidToken("It has expired.")
    if max(claims["iat"], claims.get("nbf", 0)) > now + verifier.tolerance_secs:
        raise InvalidToken("It is not valid yet.")
    if not all(isinstance(claims.get(name), str) for name in ("sub", "jti", "client_id")):
        raise InvalidToken("It lacks sub, jti or client_id.")
    if verifier.tenant_id is not None and claims.get("tenant_id") != verifier.tenant_id:
        raise InvalidToken("It is for another tenant.")
    if "cnf" in claims:
        raise InvalidToken("It is bound to a key.")
    if "status" in claims and verifier._revoked(claims["status"]):
        raise InvalidToken("It was revoked.")
    missing = set(scopes) - set(str(claims.get("scope", "")).split(" "))
    if missing:
        raise InsufficientScope(" ".join(sorted(missing)))
    return claims


# Webhooks


class InvalidWebhook(Exception):
    """The delivery is not authentic, or too old: answer 400."""


@dataclass(frozen=True)
class Webhook:
    #: Store it with the effect of the event: a repeated delivery has the same id.
    delivery_id: str
    event_type: str
    event: Dict[str, Any]


_DECIMAL = re.compile(r"0|[1-9][0-9]{0,14}")
_VISIBLE = re.compile(r"[!-~]{1,255}")


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: Union[str, List[str]],
    max_age_secs: int = 300,
    now: Optional[float] = None,
) -> Webhook:
    """An authentic delivery. `body` are the bytes as received. During a rotation, `secret` is a list of both secrets.

    Raises InvalidWebhook. Raises ValueError for a secret with less than 16 bytes: an unset secret is empty.
    """
    secrets = [secret] if isinstance(secret, str) else secret
    if any(len(one.encode()) < 16 for one in secrets):
        raise ValueError("a secret has at least 16 bytes")
    named = {name.lower(): value for name, value in headers.items()}

    def value(name: str, rule: "re.Pattern[str]") -> str:
        found = named.get(name, "")
        if not rule.fullmatch(found):
            raise InvalidWebhook(f"The header {name} is missing or malformed.")
        return found

    if named.get("x-svc-signature-suite") != "svc-webhook-v1":
        raise InvalidWebhook("The signature suite is not supported.")
    given = value("x-svc-signature-256", re.compile(r"sha256=[0-9a-f]{64}"))
    timestamp = value("x-svc-timestamp", _DECIMAL)
    max_age = value("x-svc-signature-max-age", _DECIMAL)
    delivery, event_type = value("x-svc-delivery", _VISIBLE), value("x-svc-event", _VISIBLE)
    signed = "\n".join(["svc-webhook-v1", timestamp, max_age, delivery, event_type, ""]).encode() + body
    matches = False
    for one in secrets:
        # HKDF-SHA256 (RFC 5869): one block is all that 32 bytes need.
        extracted = hmac.digest(b"svc:webhook-mac:v1", one.encode(), hashlib.sha256)
        key = hmac.digest(extracted, b"svc-webhook-mac-v1\x01", hashlib.sha256)
        mac = "sha256=" + hmac.digest(key, signed, hashlib.sha256).hex()
        matches |= hmac.compare_digest(mac, given)
    if not matches:
        raise InvalidWebhook("The signature is not valid.")
    age = int(time.time() if now is None else now) - int(timestamp)
    if not 0 <= age <= min(int(max_age), max_age_secs):
        raise InvalidWebhook("The delivery is too old, or its time is in the future.")
    return Webhook(delivery, event_type, json.loads(body))


# Egress


@dataclass(frozen=True)
class Egress:
    """Calls with a credential of the vault, which the program never sees."""

    base_url: str
    credential_id: str
    #: Gives an access token with `vault:read`, of an agent or a delegation.
    token: Callable[[], str]

    def request(
        self, method: str, url: str, headers: Optional[Mapping[str, str]] = None, body: Optional[bytes] = None
    ) -> Answer:
        """The response of the upstream, with any status. Raises ServiceRefusal if the service refuses the call."""
        sent = {
            "authorization": f"Bearer {self.token()}",
            "x-svc-credential-id": self.credential_id,
            "x-svc-method": method,
            "x-svc-url": url,
            "x-svc-stream-response": "false",
        }
        others = []
        content_type = "application/octet-stream"
        for name, value in (headers or {}).items():
            lower = name.lower()
            if lower == "content-type":
                content_type = value
            elif re.fullmatch(r"[a-z0-9-]+", lower) and re.fullmatch(r"[\t -~]*", value):
                sent[f"x-svc-header-{lower}"] = value
            else:
                others.append([lower, value])
        if others:
            sent["x-svc-headers"] = json.dumps(others)
        if body is not None:
            sent["content-type"] = content_type
        answer = _send("POST", f"{self.base_url}/v1/proxy/body", sent, body or b"")
        # The field says whether the upstream or the service wrote the response (RFC 9209).
        status = answer.headers.get("proxy-status", "error=none")
        if "error=" not in status:
            return answer
        is_json = "json" in answer.headers.get("content-type", "")
        raise ServiceRefusal(answer.status, answer.json() if is_json else None, answer.headers)


# Agents

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def _base58(data: bytes) -> str:
    number = int.from_bytes(data, "big")
    text = ""
    while number > 0:
        number, rest = divmod(number, 58)
        text = _BASE58[rest] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


class AgentKey:
    """An Ed25519 key of an agent."""

    def __init__(self, private: ed25519.Ed25519PrivateKey):
        self._private = private
        raw = private.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        self.public_key = _b64(raw)
        self.did = "did:key:z" + _base58(b"\xed\x01" + raw)
        jwk = json.dumps({"crv": "Ed25519", "kty": "OKP", "x": self.public_key}, separators=(",", ":"))
        #: RFC 7638.
        self.fingerprint = _b64(hashlib.sha256(jwk.encode()).digest())

    @classmethod
    def create(cls) -> "AgentKey":
        return cls(ed25519.Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, pem: bytes) -> "AgentKey":
        private = serialization.load_pem_private_key(pem, password=None)
        if not isinstance(private, ed25519.Ed25519PrivateKey):
            raise ValueError("the key is not Ed25519")
        return cls(private)

    def to_pem(self) -> bytes:
        """For a file that only its owner can read."""
        return self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def sign(self, text: str) -> str:
        return _b64(self._private.sign(text.encode()))

    def registration(self, issuer: str, tenant_id: str) -> Dict[str, str]:
        """The members of a registration, with the proof of ownership."""
        suite = "svc-agent-key-ownership-v1"
        claim = "\n".join([suite, issuer, tenant_id, "did_key", "ed25519", self.public_key])
        return {
            "anchor_type": "did_key",
            "anchor_value": self.did,
            "public_key": self.public_key,
            "key_algorithm": "ed25519",
            "key_ownership_proof": self.sign(claim),
        }


def solve(challenge_token: str, difficulty_bits: int) -> str:
    """The proof of work: a nonce whose SHA-256 begins with `difficulty_bits` zero bits."""
    limit = 1 << (256 - difficulty_bits)
    start = hashlib.sha256(f"{challenge_token}:".encode())
    nonce = 0
    while True:
        digest = start.copy()
        digest.update(str(nonce).encode())
        if int.from_bytes(digest.digest(), "big") < limit:
            return str(nonce)
        nonce += 1


def _metadata(base_url: str) -> Dict[str, Any]:
    return _call("GET", f"{base_url}/api/v1/agents/workspace/bootstrap", 200)


def _work(url: str, start: Mapping[str, Any], expected: int, rest: Mapping[str, Any]) -> Dict[str, Any]:
    challenge = _call("POST", url, 200, value=start)
    nonce = solve(challenge["challenge_token"], challenge["difficulty_bits"])
    while True:
        try:
            proof = {"challenge_id": challenge["challenge_id"], "nonce": nonce, **rest}
            return _call("POST", f"{url}/complete", expected, value=proof)
        except ServiceRefusal as refusal:
            # Too early, or busy: the challenge and the nonce stay valid.
            if refusal.status not in (425, 503) or not 0 < (refusal.retry_after_secs or 0) <= 60:
                raise
            time.sleep(refusal.retry_after_secs or 1)


def create_workspace(
    base_url: str, key: AgentKey, name: str, organization_name: str, redirect_uris: Tuple[str, ...] = ()
) -> Dict[str, Any]:
    """An agent with an organization, a sandbox tenant and an application. Some values are shown only once."""
    metadata = _metadata(base_url)
    start = {"name": name, **key.registration(metadata["issuer"], metadata["control_plane_tenant_id"])}
    rest = {
        "organization_name": organization_name,
        "redirect_uris": list(redirect_uris),
        "issue_operator_invite": False,
        "framework": "generic",
    }
    return _work(f"{base_url}/api/v1/agents/workspace/bootstrap/pow", start, 201, rest)


def register_agent(base_url: str, key: AgentKey, name: str, tenant_id: str) -> Dict[str, Any]:
    """An agent in a tenant that admits agents."""
    issuer = _metadata(base_url)["issuer"]
    start = {"name": name, "tenant_id": tenant_id, **key.registration(issuer, tenant_id)}
    return _work(f"{base_url}/api/v1/agents/auth/register/pow", start, 200, {})


class AgentSession:
    """Access tokens of an agent, from signed challenges, renewed before they expire."""

    def __init__(self, base_url: str, key: AgentKey, tenant_id: str, scope: Optional[str] = None):
        self.base_url, self.key, self.tenant_id, self.scope = base_url, key, tenant_id, scope
        self._issuer = _metadata(base_url)["issuer"]
        self._lock = threading.Lock()
        self._token, self._ends_at = "", 0.0

    def token(self) -> str:
        """A token that lasts at least half a minute."""
        with self._lock:
            if time.monotonic() > self._ends_at - 30:
                self._log_in()
            return self._token

    def request(self, method: str, path: str, value: Any = None, expected: int = 200) -> Any:
        """A JSON request. Raises ServiceRefusal for any status but `expected`."""
        return _call(method, self.base_url + path, expected, self.token(), value)

    def _log_in(self) -> None:
        url = f"{self.base_url}/api/v1/agents/auth"
        named = {"key_id": self.key.fingerprint, "tenant_id": self.tenant_id}
        challenge = _call("POST", f"{url}/challenge", 200, value=named)
        payload = challenge["payload"]
        fields = payload.split("\n")
        # A signature confirms every part of the string, so each part is checked.
        expected = ["svc-agent-challenge-v1", self._issuer, self.tenant_id.lower()]
        if len(fields) != 8 or fields[:3] != expected or fields[4] != self.key.fingerprint:
            raise ValueError("the challenge is for another issuer, tenant or key, and is not signed")
        if fields[5] != challenge["challenge_id"]:
            raise ValueError("the challenge names another challenge, and is not signed")
        proof = {"challenge_id": fields[5], "signature": self.key.sign(payload)}
        if self.scope is not None:
            proof["scope"] = self.scope
        answer = _call("POST", f"{url}/verify", 200, value=proof)
        self._token = answer["access_token"]
        self._ends_at = time.monotonic() + answer["expires_in"]
