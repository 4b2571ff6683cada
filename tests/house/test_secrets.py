"""No secret lies in the repository, neither in a file of today nor anywhere in its history."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.service.secrets import new_secret
from tests.house.leaks import Leak, leaks

ROOT = Path(__file__).parents[2]
GIT = ("git", "-C", str(ROOT), "-c", "safe.directory=*")

MADE_UP = {
    "whsec_c2lnbmluZyBhbmQgbm90IGp1c3QgcmVwZWF0aW5nIQ==": "says in plain words that it signs",
    "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD": "the example of the API page",
    "://USER:PASSWORD@": "a place to fill in",
    "://user:password@": "a place to fill in",
    "://ada:secret?se@": "signs that an address must spell otherwise",
    "://ada:secret#se@": "signs that an address must spell otherwise",
    "://ada:se%40cret@": "signs that an address must spell otherwise",
}
"""What looks like a secret and is none; so is all that a test makes up for itself below."""

REAL_ONES = [
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE",
    "ghp_" + "aB3" * 12,
    "github_pat_" + "11ABCDEFG0" * 6,
    "glpat-" + "x7Yq-" * 4,
    "AKIA" + "IOSFODNN7" + "EXAMPLX",
    "xoxb-" + "123456789012-abcdefABCDEF",
    "https://hooks.slack.com/services/" + "T01234567/B01234567/aBcDeFgHiJkLmNoP",
    "postgresql://mergeyard:" + "hunter2hunter2@db",
    "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "client_secret = " + '"9Xk2vQ7LrT5pWz8mB4nC6yH3jD1fG0sA"',
    '"api_key"' + ': "q8Zt3Vw6Yb1Nc4Xm7Kp0Lr5Hs2Jd9Fg"',
]
WORDS = [
    'token = "token-for-the-people-of-acme"',
    'secret_name = "mergeyard-database-url"',
    'TOKEN = re.compile(r"[0-9a-f]{40}")',
    'password: "${POSTGRES_PASSWORD:?set it}"',
    "https://user@example.org:8080/path",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ",
]


@pytest.mark.parametrize("text", REAL_ONES)
def test_what_looks_like_a_secret_is_found(text: str):
    assert list(leaks(f"before {text} after"))


def test_a_token_of_our_own_is_found():
    assert list(leaks(f"curl -H 'x-api-token: {new_secret()}'"))


@pytest.mark.parametrize("text", WORDS)
def test_what_is_only_called_a_secret_is_not(text: str):
    assert list(leaks(text)) == []


def in_a_repository() -> bool:
    asked = subprocess.run([*GIT, "rev-parse", "--git-dir"], capture_output=True, check=False)
    return asked.returncode == 0


from_git = pytest.mark.skipif(not in_a_repository(), reason="this is a copy without its history")


def files() -> Iterator[tuple[str, bytes]]:
    """All that are there or would be committed."""
    listed = subprocess.run(
        [*GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0")[:-1]:
        if (ROOT / name).is_file():
            yield name, (ROOT / name).read_bytes()


def history() -> Iterator[tuple[str, bytes]]:
    """Every content that any commit has, and what every commit says."""
    listed = subprocess.run([*GIT, "rev-list", "--objects", "--all"], capture_output=True, check=True).stdout.decode()
    names = {line[:40]: line[41:] for line in listed.splitlines()}
    asked = [*GIT, "cat-file", "--batch", "--buffer"]
    contents = subprocess.run(asked, input="\n".join(names).encode(), capture_output=True, check=True).stdout
    place = 0
    while place < len(contents):
        end_of_line = contents.index(b"\n", place)
        sha, kind, size = contents[place:end_of_line].decode().split(" ")
        begin, place = end_of_line + 1, end_of_line + 1 + int(size) + 1
        if kind in {"blob", "commit"}:
            yield names[sha] or sha, contents[begin : place - 1]


def found_in(contents: Iterator[tuple[str, bytes]]) -> set[tuple[str, Leak]]:
    known = {*MADE_UP, *REAL_ONES}
    return {
        (name, leak)
        for name, content in contents
        for leak in leaks(content.decode(errors="replace"))
        if not any(leak.text in each or each in leak.text for each in known)
    }


@from_git
def test_no_file_holds_a_secret():
    assert found_in(files()) == set()


@from_git
@pytest.mark.long
def test_no_secret_was_ever_committed():
    assert found_in(history()) == set()


@from_git
@pytest.mark.parametrize("made_up", MADE_UP)
def test_every_exception_is_still_needed(made_up: str):
    assert [name for name, content in files() if made_up.encode() in content and name != "tests/house/test_secrets.py"]
