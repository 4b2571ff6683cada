"""Makes OpenPGP keys without GnuPG."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from mergeyard.adapters import signing


def to_pgp_file(key: Ed25519PrivateKey, *, protection: int = 0) -> str:
    """A secret key without user ID and signatures, as version 4 describes it."""
    secret = key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    point = b"\x40" + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    head = bytes((4, *(1_600_000_000).to_bytes(4), 22, 9)) + bytes.fromhex("2b06010401da470f01")
    body = head + signing.to_mpi(point) + bytes((protection,)) + signing.to_mpi(secret) + b"\0\0"
    return signing.to_pgp_armor("PGP PRIVATE KEY BLOCK", signing.to_packet(signing.SECRET_KEY, body))
