"""Makes the secrets of API tokens, and tells a mistyped one from one worth looking up."""

import hashlib
import re
import secrets
import string
import zlib

PREFIX = "my_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_BYTES = 32
RANDOM_WIDTH = 43
CHECKSUM_WIDTH = 6
FORM = re.compile(rb"my_[0-9A-Za-z]{%d}" % (RANDOM_WIDTH + CHECKSUM_WIDTH))


def new_secret() -> str:
    chance = int.from_bytes(secrets.token_bytes(RANDOM_BYTES), "big")
    body = PREFIX + base62(chance, RANDOM_WIDTH)
    return body + checksum(body.encode())


def digest(secret: bytes) -> bytes:
    """All that is ever stored of a secret: 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret).digest()


def well_formed(secret: bytes) -> bool:
    """Whether it can be one of ours at all, so that nobody has to ask the store about a typing error."""
    if FORM.fullmatch(secret) is None:
        return False
    return secret[-CHECKSUM_WIDTH:] == checksum(secret[:-CHECKSUM_WIDTH]).encode()


def checksum(body: bytes) -> str:
    return base62(zlib.crc32(body), CHECKSUM_WIDTH)


def base62(number: int, width: int) -> str:
    digits: list[str] = []
    for _ in range(width):
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))
