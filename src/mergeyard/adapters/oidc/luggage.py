"""What a browser carries while its visitor signs in elsewhere, sealed.

No server remembers who left: whichever replica they come back to opens what they carry. The key follows from the secret
that all replicas share with the provider.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from secrets import token_bytes, token_urlsafe

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from mergeyard.domain.instants import MINUTE, Instant, later

LASTING = 10 * MINUTE
PURPOSE = b"mergeyard sign-in"
NONCE_BYTES = 12


class Luggage(Struct, frozen=True, kw_only=True):
    state: str
    """Comes back with the answer: it shows that the answer is to this question."""
    nonce: str
    """Comes back within the token: it shows that the token was made for this sign-in."""
    verifier: str
    """Goes to the provider with the code: whoever stole the code does not have it."""
    there: str
    until: Instant

    @property
    def challenge(self) -> str:
        """All that the provider learns of the verifier beforehand."""
        return urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


def packed_for(there: str, now: Instant) -> Luggage:
    return Luggage(
        state=token_urlsafe(24),
        nonce=token_urlsafe(24),
        verifier=token_urlsafe(48),
        there=there,
        until=later(now, LASTING),
    )


class Lock:
    def __init__(self, secret: str) -> None:
        self._cipher = AESGCM(hmac.new(secret.encode(), PURPOSE, sha256).digest())

    def closed(self, luggage: Luggage) -> str:
        nonce = token_bytes(NONCE_BYTES)
        sealed = self._cipher.encrypt(nonce, msgspec.json.encode(luggage), PURPOSE)
        return urlsafe_b64encode(nonce + sealed).decode()

    def opened(self, text: str, now: Instant) -> Luggage | None:
        """None when it is not ours, or too old."""
        try:
            sealed = urlsafe_b64decode(text.encode())
            plain = self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], PURPOSE)
            luggage = msgspec.json.decode(plain, type=Luggage)
        except (InvalidTag, ValueError):
            return None
        return luggage if now < luggage.until else None
