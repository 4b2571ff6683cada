"""Signatures of commits: which of them the fake GitHub verifies, and the keys that users registered."""

import re
from base64 import b64decode

from tests.support.forges.github.actions import FakeRepository

SIGNATURE = re.compile(r"^gpgsig (-----BEGIN [^\n]+\n(?: [^\n]*\n)+)", re.MULTILINE)
COMMITTER = re.compile(r"^committer [^\n]*<((?:[0-9]+\+)?([^@>\n]*)@[^>\n]*)>", re.MULTILINE)


def is_verified(repository: FakeRepository, sha: str) -> bool:
    """Whether the account with the address of the committer registered the key of the signature; a key of OpenPGP must
    have this address. The signature itself is not computed again."""
    if repository.commits_are_signed or sha in repository.verified_commits:
        return True
    header = repository.origin.run("cat-file", "commit", sha).decode(errors="replace").partition("\n\n")[0] + "\n"
    signature, committer = SIGNATURE.search(header), COMMITTER.search(header)
    if signature is None or committer is None:
        return False
    content, login, auth = _decode_armor(signature[1]), committer[2], repository.organization.auth
    lines = auth.ssh_signing_keys.get(login, [])
    keys = [b64decode(line.split()[1]) for line in lines]
    gpg_keys = auth.gpg_keys.get(login, {}).items()
    keys += [bytes.fromhex(fingerprint) for fingerprint, address in gpg_keys if address == committer[1]]
    return any(key in content for key in keys)


def _decode_armor(armored: str) -> bytes:
    """Without the header lines and the checksum of an OpenPGP signature."""
    lines = [line.strip() for line in armored.splitlines()]
    return b64decode("".join(line for line in lines if ":" not in line and not line.startswith(("-", "="))))


def list_unverified(repository: FakeRepository, *revisions: str) -> list[str]:
    """The newest first."""
    found = repository.origin.run("rev-list", *revisions).decode().split()
    return [sha for sha in found if not is_verified(repository, sha)]


def describe_unverified(shas: list[str]) -> str | None:
    if not shas:
        return None
    count = "1 violation" if len(shas) == 1 else f"{len(shas)} violations"
    return "\n".join(["Commits must have verified signatures.", f"  Found {count}:", "", *(f"  {sha}" for sha in shas)])
