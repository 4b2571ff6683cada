"""Signs commits and statements with the private key in a file: an SSH key, or an OpenPGP key.

No other process runs and no agent is asked. The same commit gets the same signature each time, so that a commit can be
built again. Libraries for OpenPGP do not sign with the date of a commit: what RSA and Ed25519 keys need is done here.
"""

import hashlib
import os
import re
import stat
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import structlog
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from msgspec import Struct

from mergeyard.ports.git import GitError

log = structlog.get_logger()

MAX_FILE_BYTES = 256 * 1024
MIN_RSA_BITS = 2048
NEVER = float("inf")
CHECK_INTERVAL_S = 1.0
SSH_MARKER = b"-----BEGIN OPENSSH PRIVATE KEY-----"
PGP_MARKER = b"-----BEGIN PGP PRIVATE KEY BLOCK-----"


class SigningKeyError(ValueError):
    """The file contains no key that can sign. The message says what to do."""


class FileSigner:
    """Signs with the key in a file. After the file has changed, it signs with the new key; if that cannot be used, it
    logs this once and continues with the former key."""

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path, self._monotonic = path, monotonic
        self._check_at = monotonic() + CHECK_INTERVAL_S
        self._version = read_file_version(path)
        self._key = read_signing_key(path)

    @property
    def public_key(self) -> str:
        return self._get_key().public_key

    @property
    def fingerprint(self) -> str:
        return self._get_key().fingerprint

    @property
    def expires_at(self) -> float:
        return self._get_key().expires_at

    def sign(self, payload: bytes, namespace: str) -> str:
        return self._get_key().sign(payload, namespace)

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        return self._get_key().sign_bytes(payload, at)

    def _get_key(self) -> "SshKey | OpenPgpKey":
        now, version = self._monotonic(), self._version
        if now >= self._check_at:
            self._check_at, version = now + CHECK_INTERVAL_S, read_file_version(self._path)
        if version != self._version:
            self._version = version  # of a file that cannot be used as well: this is logged once
            try:
                self._key = read_signing_key(self._path)
            except SigningKeyError as error:
                log.warning("signing_key_not_changed", error=str(error), fingerprint=self._key.fingerprint)
            else:
                log.info("signing_key_changed", file=str(self._path), fingerprint=self._key.fingerprint)
        return self._key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"


def read_file_version(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def read_signing_key(path: Path) -> "SshKey | OpenPgpKey":
    """The type of the key follows from the contents of the file."""
    try:
        content, mode = read_key_file(path)
        key = parse_signing_key(content)
    except SigningKeyError as error:
        raise SigningKeyError(f"{path} {error}") from None
    if mode & stat.S_IROTH:
        log.warning("signing_key_readable_by_all", file=str(path), advice=f"run: chmod 600 {path}")
    return key


def read_key_file(path: Path) -> tuple[bytes, int]:
    """Its contents and mode. Only a regular file is read: a pipe could have no end, or no beginning. The errors are the
    rest of a sentence about the file."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(MAX_FILE_BYTES + 1) if stat.S_ISREG(mode) else b""
    except (OSError, ValueError) as error:
        detail = error.strerror if isinstance(error, OSError) else "the path is not valid"
        raise SigningKeyError(f"cannot be read: {detail}") from None
    if not stat.S_ISREG(mode):
        raise SigningKeyError("cannot be read: it is not a regular file; store the key in a file")
    if len(content) > MAX_FILE_BYTES:
        raise SigningKeyError(f"has more than {MAX_FILE_BYTES} bytes; use a file that contains only the key")
    return content, mode


def parse_signing_key(content: bytes) -> "SshKey | OpenPgpKey":
    """The errors are the rest of a sentence about the file, and never quote it."""
    try:
        if content.lstrip().startswith(SSH_MARKER):
            return SshKey(load_ssh_private_key(content.strip() + b"\n", None))
        if PGP_MARKER in content:
            return OpenPgpKey(remove_armor(content.decode()))
    except TypeError:
        raise SigningKeyError("has a passphrase; remove it from a copy with: ssh-keygen -p -N '' -f FILE") from None
    except (ValueError, ArithmeticError, NotImplementedError, UnsupportedAlgorithm) as error:
        other = SigningKeyError("is damaged, or its type is not supported; use an Ed25519 key")
        raise error if isinstance(error, SigningKeyError) else other from None
    advice = "create one with: ssh-keygen -t ed25519 -N '' -f FILE, or export one with: gpg --armor"
    raise SigningKeyError(f"has no private key in a known format; {advice} --export-secret-keys NAME")


# SSH keys

CURVE_HASHES = {"secp256r1": hashes.SHA256(), "secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}
CURVE_ORDERS = {  # `cryptography` has them since version 45
    "secp256r1": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "secp384r1": (1 << 384) - 0x389CB27E0BC8D220A7E5F24DB74F58851313E695333AD68D,
    "secp521r1": (1 << 521) - 0x5AE79787C40D069948033FEB708F65A2FC44A36477663B851449048E16EC79BF7,
}
SSHSIG = b"SSHSIG"


class SshKey:
    """Signs as OpenSSH's `PROTOCOL.sshsig` describes."""

    def __init__(self, key: object) -> None:
        if isinstance(key, rsa.RSAPrivateKey):
            refuse_short_key(key.key_size)
        elif not isinstance(key, Ed25519PrivateKey | ec.EllipticCurvePrivateKey):
            raise SigningKeyError("has a type that is not supported; use an Ed25519 key")
        self._key, self.expires_at = key, NEVER
        self.public_key = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        self._type, encoded = self.public_key.split()
        self._public_blob = b64decode(encoded)
        self._sign(b"")  # raises if the OpenSSL of the machine is too old for this key
        self.fingerprint = f"SHA256:{b64encode(hashlib.sha256(self._public_blob).digest()).decode().rstrip('=')}"

    def sign(self, payload: bytes, namespace: str) -> str:
        common = (namespace.encode(), b"", b"sha512")
        value = self._sign(SSHSIG + to_ssh_strings(*common, hashlib.sha512(payload).digest()))
        if isinstance(self._key, ec.EllipticCurvePrivateKey):  # the numbers of SSH have a bit for the sign
            value = to_ssh_strings(*(part.to_bytes(part.bit_length() // 8 + 1) for part in decode_dss_signature(value)))
        algorithm = b"rsa-sha2-512" if isinstance(self._key, rsa.RSAPrivateKey) else self._type.encode()
        fields = to_ssh_strings(self._public_blob, *common, to_ssh_strings(algorithm, value))
        return to_armor("SSH SIGNATURE", SSHSIG + (1).to_bytes(4) + fields)

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:  # noqa: ARG002
        return self.fingerprint, self._sign(payload)

    def _sign(self, payload: bytes) -> bytes:
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(payload)
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(payload, PKCS1v15(), hashes.SHA512())
        value = self._key.sign(payload, ec.ECDSA(CURVE_HASHES[self._key.curve.name], deterministic_signing=True))
        r, s = decode_dss_signature(value)  # (r, n - s) is valid as well: we always write the lower number
        return encode_dss_signature(r, min(s, CURVE_ORDERS[self._key.curve.name] - s))


def to_armor(title: str, content: bytes) -> str:
    lines = re.findall(".{1,64}", b64encode(content).decode())
    return "\n".join((f"-----BEGIN {title}-----", *lines, f"-----END {title}-----\n"))


def to_ssh_strings(*contents: bytes) -> bytes:
    return b"".join(len(content).to_bytes(4) + content for content in contents)


def refuse_short_key(bits: int) -> None:
    if bits < MIN_RSA_BITS:
        raise SigningKeyError(f"has an RSA key of {bits} bits; use at least {MIN_RSA_BITS} bits, or an Ed25519 key")


# OpenPGP keys (RFC 9580, of which GnuPG and the Git hosts use version 4)

VERSION, RSA_ALGORITHMS, EDDSA = 4, (1, 3), 22
ED25519_OID = bytes.fromhex("2b06010401da470f01")
SHA512_ID = 10
SIGNATURE, SECRET_KEY, PUBLIC_KEY, SECRET_SUBKEY, USER_ID, PUBLIC_SUBKEY = 2, 5, 6, 7, 13, 14
PUBLIC_TAGS = {SECRET_KEY: PUBLIC_KEY, SECRET_SUBKEY: PUBLIC_SUBKEY} | {tag: tag for tag in (PUBLIC_KEY, PUBLIC_SUBKEY)}
OF_DOCUMENT, OF_SUBKEY, OF_UNKNOWN, REVOCATIONS = 0x00, 0x18, 0xFF, (0x20, 0x28)
CREATED, EXPIRES, ISSUER, FLAGS, ISSUER_FINGERPRINT = 2, 9, 16, 27, 33
CAN_SIGN = 0x02
COMMIT_DATE = re.compile(rb"tree [0-9a-f]+\n(?:parent [0-9a-f]+\n)*author [^\n]*\ncommitter [^\n]* (\d{1,10}) [+-]\d")
ARMOR = re.compile(r"-----BEGIN PGP [A-Z ]+-----[ \t]*\r?\n(?:\S[^\n]*\n)*[ \t]*\r?\n([A-Za-z0-9+/=\s]+)-----END PGP ")
CHECKSUM = re.compile(r"^=[A-Za-z0-9+/]{4}\s*\Z", re.MULTILINE)

PgpPrivateKey = Ed25519PrivateKey | rsa.RSAPrivateKey


class PgpSignature(Struct, frozen=True):
    kind: int
    algorithm: int
    hash_id: int
    hashed: bytes
    """Its part that is signed together with the payload."""
    fields: dict[int, bytes]
    value: bytes


class PgpKey(Struct, frozen=True):
    """A primary key or a subkey."""

    body: bytes
    """Of its public packet."""
    created: int
    algorithm: int
    public: Ed25519PublicKey | rsa.RSAPublicKey
    private: PgpPrivateKey | None
    """None: it is encrypted, or elsewhere, for example on a card."""
    is_primary: bool
    signatures: list[PgpSignature] = []

    @property
    def hashed(self) -> bytes:
        return b"\x99" + len(self.body).to_bytes(2) + self.body

    @property
    def fingerprint(self) -> bytes:
        return hashlib.sha1(self.hashed, usedforsecurity=False).digest()

    @property
    def can_sign(self) -> bool:
        """A primary key without flags can."""
        return bool(int.from_bytes(self.rights[FLAGS][:1]) & CAN_SIGN) if self.rights else self.is_primary

    @property
    def is_revoked(self) -> bool:
        return any(each.kind in REVOCATIONS for each in self.signatures)

    @property
    def expires_at(self) -> float:
        return self.created + (int.from_bytes(self.rights.get(EXPIRES, b"")) or NEVER)

    @property
    def rights(self) -> dict[int, bytes]:
        """The fields of the newest signature of its owner: signatures of other people have no flags."""
        own = [each.fields for each in self.signatures if FLAGS in each.fields]
        return max(own, key=lambda fields: fields.get(CREATED, b"")) if own else {}


class OpenPgpKey:
    def __init__(self, content: bytes) -> None:
        keys, public_packets = read_keys(content)
        self.fingerprint = keys[0].fingerprint.hex().upper()
        self.public_key = to_pgp_armor("PGP PUBLIC KEY BLOCK", public_packets)
        self._key, self._private = choose_signing_key(keys)
        self.expires_at = min(self._key.expires_at, keys[0].expires_at)

    def sign(self, payload: bytes, namespace: str) -> str:  # noqa: ARG002
        """A commit is signed at its own date, anything else now; also by an expired key: the queue must not stop."""
        date = COMMIT_DATE.match(payload)
        return to_pgp_armor("PGP SIGNATURE", self._sign(payload, int(date[1] if date else time.time())))

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        if at >= self.expires_at:
            raise GitError("The key in signing_key_file has expired. Extend it, and export it again.")
        return self.fingerprint, self._sign(payload, at)

    def _sign(self, payload: bytes, at: int) -> bytes:
        created = (max(at, self._key.created) & 0xFFFF_FFFF).to_bytes(4)
        fields = to_field(ISSUER_FINGERPRINT, bytes((VERSION, *self._key.fingerprint))) + to_field(CREATED, created)
        hashed = bytes((VERSION, OF_DOCUMENT, self._key.algorithm, SHA512_ID)) + len(fields).to_bytes(2) + fields
        data = to_signed_data(payload, hashed)
        digest = hashlib.sha512(data).digest()
        if isinstance(self._private, rsa.RSAPrivateKey):
            return to_signature(self._key, hashed, digest, [self._private.sign(data, PKCS1v15(), hashes.SHA512())])
        both = self._private.sign(digest)
        return to_signature(self._key, hashed, digest, [both[:32], both[32:]])


def to_signature(key: PgpKey, hashed: bytes, digest: bytes, numbers: list[bytes]) -> bytes:
    """The only form in which we write it; a part of its bytes is not signed."""
    key_id = to_field(ISSUER, key.fingerprint[-8:])
    value = b"".join(map(to_mpi, numbers))
    return to_packet(SIGNATURE, hashed + len(key_id).to_bytes(2) + key_id + digest[:2] + value)


def choose_signing_key(keys: list[PgpKey]) -> tuple[PgpKey, PgpPrivateKey]:
    """As GnuPG does: the newest subkey that can sign, else the primary key."""
    now, usable = time.time(), [key for key in keys if key.can_sign]
    kept = [key for key in usable if not key.is_revoked and not keys[0].is_revoked]
    current = [key for key in kept if min(key.expires_at, keys[0].expires_at) > now]
    unlocked = [(key, key.private) for key in current if key.private is not None]
    if not usable:
        raise SigningKeyError("has no RSA or Ed25519 key that can sign; add such a subkey, and export the key again")
    if not current:
        fault = "an expired key; extend it, and export it again" if kept else "a revoked key; create another one"
        raise SigningKeyError(f"has {fault}")
    if not unlocked:
        raise SigningKeyError("has a passphrase, or no secret part; export a copy without a passphrase")
    return max(unlocked, key=lambda found: (not found[0].is_primary, found[0].created))


def read_keys(content: bytes) -> tuple[list[PgpKey], bytes]:
    """The primary key and its subkeys that can be used here, and everything about them that is public."""
    keys, public_packets, is_known = list[PgpKey](), b"", False
    for tag, body in read_packets(content):
        if tag in PUBLIC_TAGS:
            is_primary = PUBLIC_TAGS[tag] == PUBLIC_KEY
            key = read_key(body, is_primary=is_primary, has_secret=tag != PUBLIC_TAGS[tag])
            is_known = key is not None
            if is_primary == bool(keys) or not (keys or key):
                raise SigningKeyError("must have one RSA or Ed25519 key with its subkeys; export only such a key")
            if key is not None:
                keys.append(key)
                public_packets += to_packet(PUBLIC_TAGS[tag], key.body)
        elif is_known and tag in (SIGNATURE, USER_ID):
            public_packets += to_packet(tag, body)
            keys[-1].signatures.extend([read_signature(body)] if tag == SIGNATURE else [])
    if not keys:
        raise SigningKeyError("has no OpenPGP key")
    return keys, public_packets


def read_key(body: bytes, *, is_primary: bool, has_secret: bool) -> PgpKey | None:
    """None: of a type that is not supported."""
    source = Reader(body)
    version, created, algorithm = source.number(1), source.number(4), source.number(1)
    if version == VERSION and algorithm in RSA_ALGORITHMS:
        modulus, exponent = source.mpi(), source.mpi()
        refuse_short_key(modulus.bit_length())
        public = rsa.RSAPublicNumbers(exponent, modulus).public_key()
    elif version == VERSION and algorithm == EDDSA and source.take(source.number(1)) == ED25519_OID:
        public = Ed25519PublicKey.from_public_bytes(source.mpi_bytes(33)[1:])
    else:
        return None
    public_body = body[: source.tell()]
    private = read_private_key(source, public) if has_secret and source.number(1) == 0 else None
    return PgpKey(public_body, created, algorithm, public, private, is_primary)


def read_private_key(source: "Reader", public: Ed25519PublicKey | rsa.RSAPublicKey) -> PgpPrivateKey:
    if isinstance(public, rsa.RSAPublicKey):
        d, p, q = source.mpi(), source.mpi(), source.mpi()
        remainders = rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q)
        return rsa.RSAPrivateNumbers(p, q, d, *remainders, public.public_numbers()).private_key()
    key = Ed25519PrivateKey.from_private_bytes(source.mpi_bytes(32))
    if key.public_key() != public:
        raise ValueError("the two parts of the key do not belong together")
    return key


def read_signature(body: bytes) -> PgpSignature:
    source = Reader(body)
    version, kind, algorithm, hash_id = source.take(4)
    if version != VERSION:
        return PgpSignature(OF_UNKNOWN, algorithm, hash_id, b"", {}, b"")
    fields = dict(read_fields(source.take(source.number(2))))
    hashed = body[: source.tell()]
    source.take(source.number(2) + 2)
    return PgpSignature(kind, algorithm, hash_id, hashed, fields, source.read())


def read_packets(content: bytes) -> Iterator[tuple[int, bytes]]:
    source = Reader(content)
    while mark := int.from_bytes(source.read(1)):
        tag, size = (mark & 63, source.length()) if mark >= 192 else (mark >> 2 & 15, source.number(1 << (mark & 3)))
        yield tag, source.take(size)


def read_fields(content: bytes) -> Iterator[tuple[int, bytes]]:
    source = Reader(content)
    while source.tell() < len(content):
        size = source.length()
        yield source.number(1) & 0x7F, source.take(size - 1)


class Reader(BytesIO):
    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def mpi(self) -> int:
        return self.number((self.number(2) + 7) // 8)

    def mpi_bytes(self, size: int) -> bytes:
        return self.take((self.number(2) + 7) // 8).rjust(size, b"\0")

    def length(self) -> int:
        first = self.number(1)
        if first < 192:
            return first
        return self.number(4) if first == 255 else (first - 192 << 8) + self.number(1) + 192

    def take(self, size: int) -> bytes:
        if not 0 <= size <= MAX_FILE_BYTES or len(content := self.read(size)) < size:
            raise ValueError("it is too short")
        return content


def to_packet(tag: int, body: bytes) -> bytes:
    return bytes((0xC0 | tag, 0xFF)) + len(body).to_bytes(4) + body


def to_field(kind: int, content: bytes) -> bytes:
    return bytes((len(content) + 1, kind)) + content


def to_mpi(content: bytes) -> bytes:
    number = int.from_bytes(content)
    return number.bit_length().to_bytes(2) + number.to_bytes((number.bit_length() + 7) // 8)


def to_signed_data(signed: bytes, hashed: bytes) -> bytes:
    return signed + hashed + bytes((VERSION, 0xFF)) + len(hashed).to_bytes(4)


def remove_armor(text: str) -> bytes:
    found = ARMOR.search(text)
    return b64decode(CHECKSUM.sub("", found[1])) if found else b""


def to_pgp_armor(title: str, content: bytes) -> str:
    crc = 0xB704CE  # of the checksum, without which GnuPG 2.2 does not find the end
    for byte in content:
        crc ^= byte << 16
        for _ in range(8):
            crc = crc << 1 ^ (0x1864CFB if crc & 0x800000 else 0)
    end = f"\n={b64encode(crc.to_bytes(3)).decode()}\n-----END"
    return to_armor(title, content).replace("\n", "\n\n", 1).replace("\n-----END", end)
