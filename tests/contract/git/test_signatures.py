"""Signed commits are verified by real git with ssh-keygen and gpg, and keys are exchanged without a restart."""

import os
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from structlog.testing import capture_logs

from mergeyard.adapters import signing
from mergeyard.adapters.signing import FileSigner, SigningKeyError, parse_signing_key
from mergeyard.cli.public_keys import KeyFileError, OpenPgpPublicKey
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Git, GitError, Identity, Remote, Signature, Signer
from tests.support.asynchronous import asynchronous
from tests.support.openpgp import to_pgp_file
from tests.support.repositories import Origin

MAIN = "refs/heads/main"
ADDRESS = "queue@example.org"
DATE = "1700000000 +0100"
COMMIT_AT = f"tree {'a' * 40}\nauthor A <a@b> 1 +0000\ncommitter A <a@b> {{}} +0000\n\nNew\n"
NOW = int(time.time())
NO_SSH = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
NO_GPG = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")

PrivateKey = Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
SSH_KEYS: dict[str, PrivateKey] = {
    "ed25519": Ed25519PrivateKey.generate(),
    "nistp256": ec.generate_private_key(ec.SECP256R1()),
    "nistp384": ec.generate_private_key(ec.SECP384R1()),
    "nistp521": ec.generate_private_key(ec.SECP521R1()),
    "rsa": rsa.generate_private_key(65537, 2048),
}


def to_ssh_file(key: PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def remove_ssh_armor(content: bytes) -> bytes:
    return b64decode(b"".join(content.splitlines()[1:-1]))


def new_ssh_file() -> bytes:
    return to_ssh_file(Ed25519PrivateKey.generate())


async def commit_signed(git: Git, origin: Origin, signer: Signer | None, message: str = "New\n\nWith text.\n") -> Sha:
    mirror = await git.mirror("h/o/n", Remote(origin.url), Identity("Mergeyard", ADDRESS, signer))
    (tip,) = (await mirror.fetch([MAIN])).values()
    author = Signature("Davis Jr.", "davis@example.org", "1600000000 +0000")
    return await mirror.commit(await mirror.tree(tip), [tip], message, author, DATE)


def verify(tmp_path: Path, commit: str, *options: str, home: str = "/nonexistent") -> subprocess.CompletedProcess[str]:
    (mirror,) = tmp_path.glob("mirrors/h/o/n.git")
    command = ["git", f"--git-dir={mirror}", *options, "verify-commit", "--verbose", commit]
    environment = {"PATH": os.environ["PATH"], "GNUPGHOME": home, "HOME": home, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def verify_ssh(tmp_path: Path, commit: str, public_key: str) -> subprocess.CompletedProcess[str]:
    allowed = tmp_path / "allowed_signers"
    allowed.write_text(f'{ADDRESS} namespaces="git" {public_key}\n')
    return verify(tmp_path, commit, "-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed}")


@NO_SSH
@pytest.mark.parametrize("kind", SSH_KEYS)
@asynchronous
async def test_git_verifies_a_commit_with_an_ssh_key(git: Git, origin: Origin, tmp_path: Path, kind: str):
    signer = parse_signing_key(to_ssh_file(SSH_KEYS[kind]))
    commit = await commit_signed(git, origin, signer)
    verified = verify_ssh(tmp_path, commit, signer.public_key)
    assert verified.returncode == 0, verified.stderr
    assert f'Good "git" signature for {ADDRESS}' in verified.stderr
    assert signer.fingerprint in verified.stderr
    other = parse_signing_key(new_ssh_file())
    assert verify_ssh(tmp_path, commit, other.public_key).returncode != 0


@pytest.mark.parametrize("kind", SSH_KEYS)
@asynchronous
async def test_the_same_commit_is_signed_in_the_same_way(git: Git, origin: Origin, kind: str):
    signer = parse_signing_key(to_ssh_file(SSH_KEYS[kind]))
    commit = await commit_signed(git, origin, signer)
    assert commit == await commit_signed(git, origin, signer)
    assert commit != await commit_signed(git, origin, None)


@NO_SSH
@asynchronous
async def test_a_changed_byte_makes_a_signature_invalid(git: Git, origin: Origin, tmp_path: Path):
    signer = parse_signing_key(new_ssh_file())
    commit = await commit_signed(git, origin, signer)
    (mirror,) = tmp_path.glob("mirrors/h/o/n.git")
    git_dir = f"--git-dir={mirror}"
    content = subprocess.check_output(["git", git_dir, "cat-file", "commit", commit])
    for old, new in ((b"With text", b"With test"), (b"Davis", b"Travis"), (b" +0100", b" +0200")):
        write = ["git", git_dir, "hash-object", "-t", "commit", "-w", "--stdin"]
        changed = subprocess.check_output(write, input=content.replace(old, new, 1)).decode().strip()
        assert changed != commit
        assert verify_ssh(tmp_path, changed, signer.public_key).returncode != 0


@NO_SSH
@pytest.mark.parametrize(
    "message", ["", "Title", "Title\n", "Über\n\n\ngpgsig text\n author x", "-----BEGIN SSH", "\n\n"]
)
@asynchronous
async def test_a_signature_changes_nothing_else_in_a_commit(git: Git, origin: Origin, tmp_path: Path, message: str):
    signer = parse_signing_key(new_ssh_file())
    commit = await commit_signed(git, origin, signer, message)
    assert verify_ssh(tmp_path, commit, signer.public_key).returncode == 0
    mirror = await git.mirror("h/o/n", Remote(origin.url))
    signed, plain = (
        await mirror.read_commit(commit),
        await mirror.read_commit(await commit_signed(git, origin, None, message)),
    )
    assert (signed.message, signed.author, signed.tree, signed.parents, signed.committer) == (
        plain.message, plain.author, plain.tree, plain.parents, plain.committer
    )  # fmt: skip
    assert signed.author.name == "Davis Jr."


@asynchronous
async def test_a_commit_that_was_packed_is_signed_again(git: Git, origin: Origin, tmp_path: Path):
    signer = parse_signing_key(new_ssh_file())
    plain, commit = await commit_signed(git, origin, None), await commit_signed(git, origin, signer)
    (mirror,) = tmp_path.glob("mirrors/h/o/n.git")
    names = subprocess.run(
        ["git", f"--git-dir={mirror}", "pack-objects", str(mirror / "objects/pack/pack")],
        input=plain.encode(), check=True, capture_output=True,
    )  # fmt: skip
    assert names.stdout
    (mirror / "objects" / plain[:2] / plain[2:]).unlink()
    assert await commit_signed(git, origin, signer) == commit


class CountingSigner:
    public_key = "none"
    fingerprint = "none"
    expires_at = float("inf")

    def __init__(self) -> None:
        self.count = 0

    def sign(self, payload: bytes, namespace: str) -> str:
        assert payload.startswith(b"tree ")
        assert namespace == "git"
        self.count += 1
        return "-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n"

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        raise NotImplementedError


@asynchronous
async def test_commits_that_are_never_pushed_are_not_signed(git: Git, origin: Origin):
    signer = CountingSigner()
    mirror = await git.mirror("h/o/n", Remote(origin.url), Identity("Mergeyard", ADDRESS, signer))
    head = origin.branch("feature", base="main", files={"a.txt": "2\n"})
    tip = origin.commit("main", {"later": "1\n"})
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.cherry_pick(tip, head)
    assert signer.count == 0
    assert isinstance(tree, str)
    await mirror.commit(tree, [tip], "Picked")
    assert signer.count == 1


# OpenPGP


class Gpg:
    def __init__(self, home: str) -> None:
        self.home = home

    def run(self, *arguments: str, stdin: str = "") -> str:
        command = ["gpg", "--homedir", self.home, "--batch", "--quiet", "--pinentry-mode", "loopback", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout

    def create(self, name: str, algorithm: str, usage: str = "sign", expires: str = "0", *options: str) -> str:
        user = f"{name} <{ADDRESS}>"
        self.run(*options, "--yes", "--passphrase", "", "--quick-generate-key", user, algorithm, usage, expires)
        listed = self.run("--with-colons", "--list-keys", f"={user}")
        return [line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:")][-1]

    def export(self, key: str, what: str = "--export-secret-keys") -> bytes:
        return self.run("--passphrase", "", "--armor", what, key).encode()


def stop_agent(home: str) -> None:
    subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False, capture_output=True)


@pytest.fixture(scope="module")
def gpg() -> Iterator[Gpg]:
    with TemporaryDirectory(prefix="gpg-") as home:
        yield Gpg(home)
        stop_agent(home)


@pytest.fixture
def verifier() -> Iterator[Gpg]:
    """Has only the public keys that a test imports."""
    with TemporaryDirectory(prefix="gpg-") as home:
        yield Gpg(home)
        stop_agent(home)


def create_key(gpg: Gpg, kind: str) -> str:
    if kind == "subkey":
        key = gpg.create("Subkey", "rsa2048", "cert")
        gpg.run("--passphrase", "", "--quick-add-key", key, "cv25519", "encr")
        gpg.run("--passphrase", "", "--quick-add-key", key, "ed25519", "sign")
        return key
    return gpg.create(kind, kind)


@NO_GPG
@pytest.mark.parametrize("kind", ["ed25519", "rsa2048", "subkey"])
@asynchronous
async def test_git_verifies_a_commit_with_an_openpgp_key(
    git: Git, origin: Origin, tmp_path: Path, gpg: Gpg, verifier: Gpg, kind: str
):
    key = create_key(gpg, kind)
    signer = parse_signing_key(gpg.export(key))
    commit = await commit_signed(git, origin, signer)
    verifier.run("--import", stdin=signer.public_key)
    verified = verify(tmp_path, commit, home=verifier.home)
    assert verified.returncode == 0, verified.stderr
    assert "Good signature" in verified.stderr
    assert signer.fingerprint == key == OpenPgpPublicKey(signer.public_key).fingerprint
    assert "PRIVATE" not in signer.public_key
    assert not verifier.run("--list-secret-keys")
    assert commit == await commit_signed(git, origin, signer)
    public = OpenPgpPublicKey(signer.public_key)
    keyid, own = signer.sign_bytes(b"a statement", NOW)
    assert (keyid, own) == signer.sign_bytes(b"a statement", NOW)
    assert keyid == key
    assert public.verify(b"a statement", own)
    assert not public.verify(b"a Statement", own)
    accepted = [
        (at, change) for at, change in product(range(len(own)), (0x01, 0x80, 0xFF))
        if public.verify(b"a statement", own[:at] + bytes((own[at] ^ change,)) + own[at + 1 :])
    ]  # fmt: skip
    assert accepted == []
    longer = own[:2] + (len(own) - 6 + 4).to_bytes(4) + own[6:] + b"more"
    assert not any(public.verify(b"a statement", changed) for changed in (own + b"\0more", own + own, longer))


@NO_GPG
def test_our_verification_agrees_with_gpg(gpg: Gpg):
    key = create_key(gpg, "subkey")
    signature = gpg.run("--passphrase", "", "--local-user", key, "--armor", "--detach-sign", stdin="a statement")
    public = gpg.export(key, "--export").decode()
    assert OpenPgpPublicKey(public).verify_armored(b"a statement", signature)
    assert not OpenPgpPublicKey(public).verify_armored(b"a statemenT", signature)
    other = OpenPgpPublicKey(gpg.export(gpg.create("Other", "ed25519"), "--export").decode())
    assert not other.verify_armored(b"a statement", signature)


@NO_GPG
def test_a_subkey_that_the_primary_key_did_not_sign_signs_nothing(gpg: Gpg):
    victim, attacker = gpg.create("Victim", "ed25519"), create_key(gpg, "subkey")
    _, signature = parse_signing_key(gpg.export(attacker)).sign_bytes(b"x", NOW)
    packets = [signing.remove_armor(gpg.export(key, "--export").decode()) for key in (victim, attacker)]
    own, foreign = ([*signing.read_packets(content)] for content in packets)
    subkeys = foreign[next(index for index, (tag, _) in enumerate(foreign) if tag == signing.PUBLIC_SUBKEY) :]
    joined = b"".join(signing.to_packet(tag, body) for tag, body in (*own, *subkeys))
    assert not OpenPgpPublicKey(signing.to_pgp_armor("PGP PUBLIC KEY BLOCK", joined)).verify(b"x", signature)


def revoke(gpg: Gpg, key: str, *, subkey: bool) -> None:
    """As an administrator does who thinks that someone else has the key."""
    choose = "key 2\n" if subkey else ""
    answers = f"{choose}revkey\ny\n1\n\ny\nsave\n"
    gpg.run("--no-tty", "--passphrase", "", "--command-fd", "0", "--edit-key", key, stdin=answers)


@NO_GPG
def test_a_revoked_subkey_neither_signs_nor_verifies(gpg: Gpg):
    key = gpg.create("Two", "ed25519", "cert")
    for day in ("20240101", "20240201"):
        gpg.run("--faked-system-time", f"{day}T000000!", "--ignore-time-conflict", "--passphrase", "",
                "--quick-add-key", key, "ed25519", "sign")  # fmt: skip
    newer = parse_signing_key(gpg.export(key))
    _, signature = newer.sign_bytes(b"x", NOW)
    assert OpenPgpPublicKey(newer.public_key).verify(b"x", signature)
    revoke(gpg, key, subkey=True)
    older = parse_signing_key(gpg.export(key))
    public = OpenPgpPublicKey(older.public_key)
    assert not public.verify(b"x", signature)
    assert not public.verify_armored(b"x", newer.sign(b"x", "git"))
    _, other = older.sign_bytes(b"x", NOW)
    assert public.verify(b"x", other)
    assert newer.fingerprint == older.fingerprint


@NO_GPG
def test_a_revoked_primary_key_neither_signs_nor_verifies(gpg: Gpg):
    key = create_key(gpg, "subkey")
    signer = parse_signing_key(gpg.export(key))
    _, signature = signer.sign_bytes(b"x", NOW)
    revoke(gpg, key, subkey=False)
    with pytest.raises(SigningKeyError, match="has a revoked key; create another one"):
        parse_signing_key(gpg.export(key))
    assert not OpenPgpPublicKey(gpg.export(key, "--export").decode()).verify(b"x", signature)


@NO_GPG
def test_a_signature_after_the_end_of_its_key_is_not_accepted(gpg: Gpg):
    signer = parse_signing_key(gpg.export(gpg.create("Ends", "ed25519", "sign", "1d")))
    public = OpenPgpPublicKey(signer.public_key)
    in_time, late = (COMMIT_AT.format(moment).encode() for moment in (NOW, NOW + 2 * 86_400))
    assert public.verify_armored(in_time, signer.sign(in_time, "git"))
    assert not public.verify_armored(late, signer.sign(late, "git"))


@NO_GPG
@pytest.mark.parametrize("kind", ["primary key", "subkey"])
def test_a_key_signs_no_statement_after_its_end_until_it_is_extended(gpg: Gpg, key_file: Path, kind: str):
    """A commit is signed, so that the queue can go on: the extended key verifies it."""
    monotonic, is_primary = Stopwatch(), kind == "primary key"
    key = gpg.create(f"Ending {kind}", "ed25519", "sign" if is_primary else "cert", "1d" if is_primary else "0")
    if not is_primary:
        gpg.run("--passphrase", "", "--quick-add-key", key, "ed25519", "sign", "1d")
    key_file.write_bytes(gpg.export(key))
    signer = FileSigner(key_file, monotonic)
    end = signer.expires_at
    assert NOW + 86_000 < end < NOW + 90_000
    late = COMMIT_AT.format(int(end)).encode()
    armor = signer.sign(late, "git")
    assert signer.sign_bytes(b"x", int(end) - 1)[0] == key
    with pytest.raises(GitError, match="has expired"):
        signer.sign_bytes(b"x", int(end))
    gpg.run("--passphrase", "", "--quick-set-expire", key, "10d", *([] if is_primary else ["*"]))
    replace_file(key_file, gpg.export(key))
    monotonic.seconds = 2
    assert signer.expires_at > end
    public = OpenPgpPublicKey(signer.public_key)
    assert public.verify(b"x", signer.sign_bytes(b"x", int(end))[1])
    assert public.verify_armored(late, armor)


def test_a_key_without_an_end_never_expires(key_file: Path):
    pgp_key = to_pgp_file(Ed25519PrivateKey.generate()).encode()
    assert FileSigner(key_file).expires_at == parse_signing_key(pgp_key).expires_at == float("inf")


@NO_GPG
def test_an_openpgp_key_that_cannot_sign_is_refused(gpg: Gpg):
    past = ("--faked-system-time", "20200101T000000")
    refused = {
        "no RSA or Ed25519 key that can sign": gpg.export(gpg.create("Certifier", "ed25519", "cert")),
        "must have one RSA or Ed25519": gpg.export(gpg.create("Curve", "nistp256")),
        "has an expired key": gpg.export(gpg.create("Expired", "ed25519", "sign", "1d", *past)),
        "use at least 2048 bits": gpg.export(gpg.create("Short", "rsa1024")),
    }
    for message, content in refused.items():
        with pytest.raises(SigningKeyError, match=message):
            parse_signing_key(content)


def test_an_openpgp_key_with_a_passphrase_is_refused():
    with pytest.raises(SigningKeyError, match="passphrase"):
        parse_signing_key(to_pgp_file(Ed25519PrivateKey.generate(), protection=254).encode())


def test_an_openpgp_key_without_user_id_signs():
    key = Ed25519PrivateKey.generate()
    signer = parse_signing_key(to_pgp_file(key).encode())
    signature = signer.sign(b"x", "any")
    public = OpenPgpPublicKey(signer.public_key)
    assert public.verify_armored(b"x", signature)
    assert not public.verify_armored(b"y", signature)
    assert not public.verify_armored(b"x", "nothing")
    with pytest.raises(KeyFileError, match="no OpenPGP key"):
        OpenPgpPublicKey("nothing")


def test_an_openpgp_signature_has_the_date_of_its_commit():
    signer = parse_signing_key(to_pgp_file(Ed25519PrivateKey.generate()).encode())
    headers = f"tree {'a' * 40}\nparent {'b' * 40}\nauthor A <a> 1650000000 +0000\ncommitter Q <q> {{}} +0100\n"
    for date, signed_at in ((1_700_000_000, 1_700_000_000), (1_500_000_000, 1_600_000_000)):
        payload = f"{headers.format(date)}\nTitle\n\ncommitter X <x> 1800000000 +0000\n".encode()
        ((_, body),) = signing.read_packets(signing.remove_armor(signer.sign(payload, "git")))
        assert int.from_bytes(signing.read_signature(body).fields[signing.CREATED]) == signed_at
        assert signer.sign(payload, "git") == signer.sign(payload, "git")


def test_a_damaged_openpgp_key_is_refused_at_every_length():
    content = signing.remove_armor(to_pgp_file(Ed25519PrivateKey.generate()))
    for size in range(len(content) - 2):
        with pytest.raises(SigningKeyError):
            parse_signing_key(signing.to_pgp_armor("PGP PRIVATE KEY BLOCK", content[:size]).encode())


CHANGED_KEYS = {
    "openpgp": signing.remove_armor(to_pgp_file(Ed25519PrivateKey.generate())),
    "ed25519": remove_ssh_armor(to_ssh_file(SSH_KEYS["ed25519"])),
    "nistp256": remove_ssh_armor(to_ssh_file(SSH_KEYS["nistp256"])),
}


@pytest.mark.parametrize("kind", CHANGED_KEYS)
def test_a_key_with_a_changed_byte_signs_or_is_refused(kind: str):
    content = CHANGED_KEYS[kind]
    title = "PGP PRIVATE KEY BLOCK" if kind == "openpgp" else "OPENSSH PRIVATE KEY"
    to_armor, refused = (signing.to_pgp_armor if kind == "openpgp" else signing.to_armor), 0
    for position, change in product(range(len(content)), (0x01, 0xFF)):
        changed = content[:position] + bytes((content[position] ^ change,)) + content[position + 1 :]
        try:
            parse_signing_key(to_armor(title, changed).encode()).sign(b"x", "git")
        except SigningKeyError:
            refused += 1
    assert refused > len(content)


def test_a_changed_byte_of_an_openpgp_signature_never_raises():
    signer = parse_signing_key(to_pgp_file(Ed25519PrivateKey.generate()).encode())
    public, (_, signature) = OpenPgpPublicKey(signer.public_key), signer.sign_bytes(b"x", NOW)
    for position, change in product(range(len(signature)), (0x01, 0x80, 0xFF)):
        changed = signature[:position] + bytes((signature[position] ^ change,)) + signature[position + 1 :]
        assert not public.verify(b"y", changed)


# Files


class Stopwatch:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "signing.key"
    path.touch(mode=0o600)
    path.write_bytes(new_ssh_file())
    return path


def replace_file(path: Path, content: bytes) -> None:
    """As a secret store does: under another name first."""
    draft = path.with_name("draft")
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.rename(path)


def test_a_new_key_is_used_within_a_second_without_a_restart(key_file: Path):
    monotonic = Stopwatch()
    signer = FileSigner(key_file, monotonic)
    old, new = signer.public_key, new_ssh_file()
    replace_file(key_file, new)
    monotonic.seconds = 0.9
    assert signer.public_key == old
    monotonic.seconds = 1.1
    with capture_logs() as logs:
        assert signer.public_key == parse_signing_key(new).public_key != old
    assert [entry["event"] for entry in logs] == ["signing_key_changed"]


@pytest.mark.parametrize("broken", [b"", b"nothing", new_ssh_file()[:200], None], ids=["empty", "text", "cut", "gone"])
def test_a_key_that_cannot_be_used_is_logged_once_and_the_former_stays(key_file: Path, broken: bytes | None):
    monotonic = Stopwatch()
    signer = FileSigner(key_file, monotonic)
    old, signature = signer.fingerprint, signer.sign(b"x", "git")
    key_file.unlink() if broken is None else replace_file(key_file, broken)
    with capture_logs() as logs:
        for monotonic.seconds in range(2, 10, 2):
            assert signer.sign(b"x", "git") == signature
    assert [(entry["event"], entry["fingerprint"]) for entry in logs] == [("signing_key_not_changed", old)]
    assert str(key_file) in logs[0]["error"]
    repaired = new_ssh_file()
    replace_file(key_file, repaired)
    monotonic.seconds = 20
    assert signer.public_key == parse_signing_key(repaired).public_key


REFUSED_FILES = {
    "an RSA key of 1024 bits": to_ssh_file(rsa.generate_private_key(65537, 1024)),
    "no private key in a known format": parse_signing_key(new_ssh_file()).public_key.encode(),
    "no private key in a known": to_ssh_file(SSH_KEYS["rsa"]).replace(b"OPENSSH", b"RSA"),
    "is damaged": new_ssh_file()[:150] + b"\n-----END OPENSSH PRIVATE KEY-----\n",
}


@pytest.mark.parametrize("message", REFUSED_FILES)
def test_a_file_that_cannot_sign_is_refused_without_quoting_it(key_file: Path, message: str):
    content = REFUSED_FILES[message]
    key_file.write_bytes(content)
    with pytest.raises(SigningKeyError, match=message) as caught:
        FileSigner(key_file)
    assert str(key_file) in str(caught.value)
    assert not any(line.decode() in str(caught.value) for line in content.split() if len(line) > 10)


def test_another_type_of_key_is_refused():
    with pytest.raises(SigningKeyError, match="use an Ed25519 key"):
        signing.SshKey(dsa.generate_private_key(1024))


@NO_SSH
def test_a_key_with_a_passphrase_is_refused(key_file: Path):
    key_file.unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "a word", "-f", str(key_file)], check=True)
    with pytest.raises(SigningKeyError, match="has a passphrase; remove it"):
        FileSigner(key_file)


def test_only_a_regular_file_of_a_limited_size_is_read(tmp_path: Path, key_file: Path):
    """A pipe without a writer would block the server."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SigningKeyError, match="cannot be read: it is not a regular file"):
            FileSigner(path)
    key_file.write_bytes(new_ssh_file() + b"\n" * signing.MAX_FILE_BYTES)
    with pytest.raises(SigningKeyError, match="has more than 262144 bytes"):
        FileSigner(key_file)


def test_a_pipe_in_the_place_of_the_file_does_not_block(tmp_path: Path, key_file: Path):
    monotonic = Stopwatch()
    signer = FileSigner(key_file, monotonic)
    old = signer.fingerprint
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").rename(key_file)
    monotonic.seconds = 2
    with capture_logs() as logs:
        assert signer.fingerprint == old
    assert [entry["event"] for entry in logs] == ["signing_key_not_changed"]


def test_the_name_and_the_signature_are_of_the_same_key(key_file: Path):
    """Also if the file changes between any two calls."""
    monotonic = Stopwatch()
    signer = FileSigner(key_file, monotonic)
    for second in range(2, 12, 2):
        replace_file(key_file, new_ssh_file())
        monotonic.seconds = second
        keyid, signature = signer.sign_bytes(b"x", NOW)
        assert parse_signing_key(key_file.read_bytes()).sign_bytes(b"x", NOW) == (keyid, signature)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(SigningKeyError, match=r"gone\.key cannot be read: No such file"):
        FileSigner(tmp_path / "gone.key")


def test_a_key_that_every_user_can_read_is_logged(key_file: Path):
    key_file.chmod(0o644)
    with capture_logs() as logs:
        FileSigner(key_file)
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("signing_key_readable_by_all", "warning")]
    key_file.chmod(0o640)
    with capture_logs() as logs:
        FileSigner(key_file)
    assert logs == []


def test_no_secret_is_shown(key_file: Path):
    signer = FileSigner(key_file)
    identity = Identity("Mergeyard", ADDRESS, signer)
    for line in key_file.read_text().splitlines()[1:-1]:
        assert line not in f"{signer} {signer!r} {identity!r} {parse_signing_key(key_file.read_bytes())!r}"
    assert repr(signer) == f"FileSigner({str(key_file)!r})"
