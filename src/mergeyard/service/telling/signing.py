"""Signs what is sent as Standard Webhooks has it: whoever has the secret can tell that it is ours, and fresh."""

import base64
import hashlib
import hmac
import secrets

from mergeyard.domain.instants import SECOND, Instant

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def signed(secret: str, message: str, now: Instant, body: bytes) -> dict[str, str]:
    """The headers that go with it. The time is that of this attempt, the message's name that of all attempts."""
    timestamp, key = str(now // SECOND), base64.b64decode(secret.removeprefix(PREFIX))
    content = f"{message}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {"webhook-id": message, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
