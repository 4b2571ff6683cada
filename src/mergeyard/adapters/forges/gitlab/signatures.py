"""Tells whether a message comes from GitLab, before anything of it is read."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import sha256

from mergeyard.domain.instants import MINUTE, SECOND, Instant
from mergeyard.ports.forge import Forged

SIGNING = "whsec_"
"""How a signing token begins; any other secret is one that GitLab simply repeats."""
TOLERANCE = 5 * MINUTE


def verify(secret: str | None, headers: Mapping[str, str], body: bytes, now: Instant) -> None:
    if not secret:
        raise Forged("no secret is configured for the webhooks of this host")
    if secret.startswith(SIGNING):
        _verify_signature(secret, headers, body, now)
    elif not hmac.compare_digest(secret.encode(), headers.get("x-gitlab-token", "").encode()):
        raise Forged("the secret token is missing, or another one")


def signature(secret: str, message: str, stamp: str, body: bytes) -> str:
    """As Standard Webhooks have it."""
    try:
        key = b64decode(secret.removeprefix(SIGNING), validate=True)
    except ValueError as error:
        raise Forged(f"the configured signing token is none: {SIGNING} must be followed by base64") from error
    digest = hmac.digest(key, f"{message}.{stamp}.".encode() + body, sha256)
    return f"v1,{b64encode(digest).decode()}"


def _verify_signature(secret: str, headers: Mapping[str, str], body: bytes, now: Instant) -> None:
    message, stamp, given = (headers.get(f"webhook-{part}", "") for part in ("id", "timestamp", "signature"))
    expected = signature(secret, message, stamp, body).encode()
    if not any(hmac.compare_digest(expected, one.encode()) for one in given.split(" ")):
        raise Forged("the signature is missing, or another one")
    if not (stamp.isdecimal() and len(stamp) < 12 and abs(int(stamp) * SECOND - now) <= TOLERANCE):
        raise Forged("it was signed at another time: compare the clocks of both machines")
