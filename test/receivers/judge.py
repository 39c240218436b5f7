"""Runs the receiver over lines of base64 fields: six headers, secret, now, body."""

import base64
import sys

from receiver import verify

NAMES = [
    "x-svc-signature-suite",
    "x-svc-signature-256",
    "x-svc-signature-max-age",
    "x-svc-timestamp",
    "x-svc-event",
    "x-svc-delivery",
]

for line in sys.stdin:
    fields = line.rstrip("\n").split("\t")
    raw = [None if field == "-" else base64.b64decode(field) for field in fields]
    headers = {name: value.decode() for name, value in zip(NAMES, raw) if value is not None}
    secret, now, body = raw[6:]
    print(str(verify(headers, body, secret.decode(), int(now))).lower())
