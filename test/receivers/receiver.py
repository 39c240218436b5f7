import hashlib
import hmac
import re
import time

MAX_AGE_SECS = 300
SECRET_BYTES_MIN = 16
DECIMAL = re.compile(r"0|[1-9][0-9]{0,14}")
VISIBLE = re.compile(r"[!-~]{1,255}")


def verify(headers, body, secret, now=None):
    """`headers` by lower-case name; `body` must be the bytes as received."""
    suite = headers.get("x-svc-signature-suite", "")
    signature = headers.get("x-svc-signature-256", "")
    timestamp = headers.get("x-svc-timestamp", "")
    max_age = headers.get("x-svc-signature-max-age", "")
    delivery = headers.get("x-svc-delivery", "")
    event = headers.get("x-svc-event", "")
    if len(secret.encode()) < SECRET_BYTES_MIN:
        return False
    if suite != "svc-webhook-v1" or not re.fullmatch(r"sha256=[0-9a-f]{64}", signature):
        return False
    if not DECIMAL.fullmatch(timestamp) or not DECIMAL.fullmatch(max_age):
        return False
    if not VISIBLE.fullmatch(delivery) or not VISIBLE.fullmatch(event):
        return False

    # HKDF-SHA256 (RFC 5869): one block is all that 32 bytes need.
    extracted = hmac.digest(b"svc:webhook-mac:v1", secret.encode(), hashlib.sha256)
    key = hmac.digest(extracted, b"svc-webhook-mac-v1\x01", hashlib.sha256)
    signed = "\n".join([suite, timestamp, max_age, delivery, event, ""]).encode() + body
    mac = hmac.digest(key, signed, hashlib.sha256)
    if not hmac.compare_digest("sha256=" + mac.hex(), signature):
        return False

    age = int(time.time() if now is None else now) - int(timestamp)
    return 0 <= age <= min(int(max_age), MAX_AGE_SECS)
