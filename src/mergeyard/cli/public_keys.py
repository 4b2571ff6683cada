"""Public keys of the queue: reads them from a file, and verifies with them what the queue signed.

The file contains SSH keys, OpenPGP keys, or lines of allowed signers as git uses them.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, cast

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from mergeyard.adapters import signing

MAX_KEY_FILE_BYTES = 1024 * 1024


class KeyFileError(Exception):
    """The file with the public key cannot be used. The message says what to do."""


class PublicKey(Protocol):
    @property
    def fingerprint(self) -> str: ...

    @property
    def principals(self) -> Sequence[str]:
        """Whose key it is, in a file of allowed signers. Empty for a key without names."""
        ...

    def is_valid_at(self, moment: datetime) -> bool:
        """Whether the file lets this key sign at this time."""
        ...

    def verify(self, payload: bytes, signature: bytes) -> bool:
        """A signature that `Signer.sign_bytes` made. Other bytes that mean the same are not accepted."""
        ...

    def verify_armored(self, payload: bytes, armor: str) -> bool:
        """A signature of a commit, in the form in which git stores it."""
        ...


def read_public_keys(path: Path, signer: str | None = None) -> Sequence[PublicKey]:
    """The keys of the queue. In a file of allowed signers these are the keys of one principal: a team has the keys of
    its developers there, too."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > MAX_KEY_FILE_BYTES:
        raise KeyFileError(f"{path} has more than {MAX_KEY_FILE_BYTES} bytes. Name a file with the keys of the queue.")
    text = content.decode(errors="replace")
    keys: list[PublicKey] = [*read_openpgp_keys(text), *read_ssh_keys(text)]
    names = {name for key in keys for name in key.principals or ("",)}
    if signer is not None:
        keys = [key for key in keys if signer in key.principals]
    elif len(names) > 1:
        listed = ", ".join(sorted(names - {""})[:MAX_LISTED_NAMES])
        raise KeyFileError(
            f"{path} has keys of several signers. Name the queue with --signer. The names are: {listed}."
        )
    if not keys:
        missing = "no public key" if signer is None else f"no public key of {signer}"
        raise KeyFileError(
            f"{path} contains {missing} that can sign for git. `mergeyard host check HOST --public-key` prints a key."
        )
    return keys


def read_openpgp_keys(text: str) -> "Iterator[OpenPgpPublicKey]":
    for after in text.split(OPENPGP_BEGIN)[1:]:
        yield OpenPgpPublicKey(f"{OPENPGP_BEGIN}{after.partition(OPENPGP_END)[0]}{OPENPGP_END}\n")


def read_ssh_keys(text: str) -> "Iterator[SshPublicKey]":
    """A line of allowed signers counts as it does for git, except that an authority counts for nothing: the queue signs
    with a plain key."""
    for line in map(str.strip, text.splitlines()):
        if (found := KEY_LINE.match(line)) is not None:
            yield SshPublicKey(found["type"], found["key"])
        elif not line.startswith("#") and (found := SIGNER_LINE.match(line)) is not None:
            period = parse_options(found["options"] or "")
            if period is not None:
                yield SshPublicKey(found["type"], found["key"], found["names"].strip('"').split(","), period)


MAX_LISTED_NAMES = 10
OPENPGP_BEGIN, OPENPGP_END = (f"-----{part} PGP PUBLIC KEY BLOCK-----" for part in ("BEGIN", "END"))
KEY = r"(?P<type>ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))[ \t]+(?P<key>[A-Za-z0-9+/=]+)(?!\S)"
OPTION = r'[A-Za-z-]+(?:="[^"]*")?'
KEY_LINE = re.compile(KEY)
SIGNER_LINE = re.compile(rf'(?P<names>"[^"]*"|[^\s"]+)[ \t]+(?:(?P<options>{OPTION}(?:,{OPTION})*)[ \t]+)?{KEY}')
OPTION_PARTS = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?')
DATE = re.compile(r"(\d{8}(?:\d{4}(?:\d{2})?)?)(Z?)")
DATE_FORMATS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}

Period = tuple[datetime, datetime]
ALWAYS: Period = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


def parse_options(text: str) -> Period | None:
    """When the line counts; None if it does not count for commits."""
    pairs = [(name.lower(), value) for name, value in OPTION_PARTS.findall(text)]
    options = dict(pairs)
    try:
        period = (
            parse_date(options.pop("valid-after")) if "valid-after" in options else ALWAYS[0],
            parse_date(options.pop("valid-before")) if "valid-before" in options else ALWAYS[1],
        )
    except (ValueError, OverflowError):
        return None
    namespaces = options.pop("namespaces", GIT_NAMESPACE).split(",")
    is_for_git = GIT_NAMESPACE in namespaces and not any(name.startswith("!") for name in namespaces)
    is_once = len(pairs) == len({name for name, _ in pairs})
    return period if is_for_git and is_once and not options else None


def parse_date(text: str) -> datetime:
    """In the time zone of this machine, unless a Z follows: as `ssh-keygen` reads it."""
    found = DATE.fullmatch(text)
    if found is None:
        raise ValueError(text)
    form = DATE_FORMATS[len(found[1])]
    return (
        datetime.strptime(f"{found[1]}+0000", f"{form}%z")
        if found[2]
        else datetime.strptime(found[1], form).astimezone()
    )


# SSH keys

GIT_NAMESPACE = "git"
SSH_ARMOR = re.compile(r"-----BEGIN SSH SIGNATURE-----([A-Za-z0-9+/=\s]*)-----END SSH SIGNATURE-----\s*")
SSHSIG_START = signing.SSHSIG + (1).to_bytes(4)
"""With the version of the format."""
RSA_HASHES = {b"rsa-sha2-256": hashes.SHA256(), b"rsa-sha2-512": hashes.SHA512()}
SSH_HASHES = {b"sha256": hashlib.sha256, b"sha512": hashlib.sha512}


SshKeyKind = Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey
"""Of the types that a line can name."""


class SshPublicKey:
    def __init__(self, key_type: str, encoded: str, principals: Sequence[str] = (), period: Period = ALWAYS) -> None:
        try:
            self._key = cast("SshKeyKind", load_ssh_public_key(f"{key_type} {encoded}".encode()))
            self._type, self._blob = key_type.encode(), b64decode(encoded)
        except (ValueError, UnsupportedAlgorithm):
            raise KeyFileError(f"The {key_type} key that begins with {encoded[:20]} is damaged.") from None
        digest = b64encode(hashlib.sha256(self._blob).digest()).decode()
        self.fingerprint = f"SHA256:{digest.rstrip('=')}"
        self.principals = principals
        self._period = period

    def is_valid_at(self, moment: datetime) -> bool:
        return self._period[0] <= moment <= self._period[1]

    def verify(self, payload: bytes, signature: bytes) -> bool:
        is_valid_signature = self._verify(payload, signature, hashes.SHA512())
        if is_valid_signature and isinstance(self._key, ec.EllipticCurvePublicKey):
            return decode_dss_signature(signature)[1] <= signing.CURVE_ORDERS[self._key.curve.name] // 2
        return is_valid_signature

    def _verify(self, payload: bytes, signature: bytes, rsa_hash: hashes.HashAlgorithm) -> bool:
        try:
            if isinstance(self._key, Ed25519PublicKey):
                self._key.verify(signature, payload)
            elif isinstance(self._key, rsa.RSAPublicKey):
                self._key.verify(signature, payload, PKCS1v15(), rsa_hash)
            else:
                self._key.verify(signature, payload, ec.ECDSA(signing.CURVE_HASHES[self._key.curve.name]))
        except InvalidSignature:
            return False
        return True

    def verify_armored(self, payload: bytes, armor: str) -> bool:
        """The format is described in OpenSSH's `PROTOCOL.sshsig`."""
        try:
            return self._verify_sshsig(payload, armor)
        except (ValueError, LookupError):
            return False

    def _verify_sshsig(self, payload: bytes, armor: str) -> bool:
        found = SSH_ARMOR.fullmatch(armor)
        content = decode_base64("".join(found[1].split())) if found else b""
        blob, namespace, reserved, hash_name, signature = split_ssh_strings(content.removeprefix(SSHSIG_START))
        if not content.startswith(SSHSIG_START) or blob != self._blob or namespace != GIT_NAMESPACE.encode():
            return False
        digest = SSH_HASHES[hash_name](payload).digest()
        signed = signing.SSHSIG + signing.to_ssh_strings(namespace, reserved, hash_name, digest)
        algorithm, value = split_ssh_strings(signature)
        rsa_hash = RSA_HASHES[algorithm] if isinstance(self._key, rsa.RSAPublicKey) else None
        if rsa_hash is None and algorithm != self._type:
            return False
        return self._verify(signed, self._from_ssh_signature(value), rsa_hash or hashes.SHA512())

    def _from_ssh_signature(self, value: bytes) -> bytes:
        if not isinstance(self._key, ec.EllipticCurvePublicKey):
            return value
        r, s = map(int.from_bytes, split_ssh_strings(value))
        return encode_dss_signature(r, s)


def split_ssh_strings(content: bytes) -> list[bytes]:
    """Each begins with its length in four bytes. Raises `ValueError` if bytes are missing."""
    strings = list[bytes]()
    while content:
        end = 4 + int.from_bytes(content[:4])
        if len(content) < end:
            raise ValueError
        strings.append(content[4:end])
        content = content[end:]
    return strings


def decode_base64(text: str) -> bytes:
    """Raises `ValueError` also for another form of the same bytes."""
    try:
        content = b64decode(text, validate=True)
    except Base64Error:
        content = b""
    if b64encode(content).decode() != text:
        raise ValueError(text)
    return content


# OpenPGP keys

PGP_HASHES = {8: hashes.SHA256(), 9: hashes.SHA384(), signing.SHA512_ID: hashes.SHA512()}
"""By their identifiers."""


class OpenPgpPublicKey:
    principals: Sequence[str] = ()

    def __init__(self, armor: str) -> None:
        try:
            (self._primary, *self._subkeys), _ = signing.read_keys(signing.remove_armor(armor))
        except ValueError as error:
            raise KeyFileError(f"The OpenPGP key cannot be used: {error}") from None
        self.fingerprint = self._primary.fingerprint.hex().upper()

    def is_valid_at(self, moment: datetime) -> bool:  # noqa: ARG002
        """`verify` compares the dates of the key with that of the signature."""
        return True

    def verify(self, payload: bytes, signature: bytes) -> bool:
        try:
            ((_, body),) = signing.read_packets(signature)
            found = signing.read_signature(body)
        except ValueError:
            return False
        return any(to_exact_signature(key, found, payload) == signature for key in self._find_signers(payload, found))

    def verify_armored(self, payload: bytes, armor: str) -> bool:
        """Also one that GnuPG made."""
        try:
            ((_, body),) = signing.read_packets(signing.remove_armor(armor))
            return any(self._find_signers(payload, signing.read_signature(body)))
        except ValueError:
            return False

    def _find_signers(self, payload: bytes, signature: signing.PgpSignature) -> Iterator[signing.PgpKey]:
        """The primary key or the subkey that made the signature. A revoked key never counts: an attacker who has it
        chooses the date of the signature."""
        primary = self._primary
        at = int.from_bytes(signature.fields.get(signing.CREATED, b""))
        for key in (primary, *self._subkeys):
            is_in_force = not any(each.is_revoked or each.expires_at <= at for each in (primary, key))
            is_own = key.is_primary or any(
                each.kind == signing.OF_SUBKEY and is_valid(primary, each, primary.hashed + key.hashed)
                for each in key.signatures
            )
            if is_in_force and is_own and key.can_sign and signature.kind == signing.OF_DOCUMENT:
                yield from [key] if is_valid(key, signature, payload) else []


def is_valid(key: signing.PgpKey, signature: signing.PgpSignature, signed: bytes) -> bool:
    hash_ = PGP_HASHES.get(signature.hash_id)
    if signature.algorithm != key.algorithm or hash_ is None:
        return False
    data, value = signing.to_signed_data(signed, signature.hashed), signing.Reader(signature.value)
    try:
        if isinstance(key.public, rsa.RSAPublicKey):
            key.public.verify(value.mpi_bytes((key.public.key_size + 7) // 8), data, PKCS1v15(), hash_)
        else:
            key.public.verify(value.mpi_bytes(32) + value.mpi_bytes(32), hashlib.new(hash_.name, data).digest())
    except (InvalidSignature, ValueError):
        return False
    return True


def to_exact_signature(key: signing.PgpKey, signature: signing.PgpSignature, payload: bytes) -> bytes:
    """As we write a valid signature."""
    value = signing.Reader(signature.value)
    numbers = [value.mpi_bytes(0) for _ in range(1 if isinstance(key.public, rsa.RSAPublicKey) else 2)]
    data = signing.to_signed_data(payload, signature.hashed)
    return signing.to_signature(
        key, signature.hashed, hashlib.new(PGP_HASHES[signature.hash_id].name, data).digest(), numbers
    )
