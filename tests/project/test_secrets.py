"""No secret is in the repository, neither in a current file nor in its history."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeyard.service.tokens import generate_secret
from tests.project.leaks import Leak, leaks

ROOT = Path(__file__).parents[2]
GIT = ("git", "-C", str(ROOT), "-c", "safe.directory=*")

KNOWN_EXAMPLES = {
    "whsec_c2lnbmluZyBhbmQgbm90IGp1c3QgcmVwZWF0aW5nIQ==": "decodes to a sentence about signing",
    "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD": "the example of the API page",
    "://USER:PASSWORD@": "a placeholder",
    "://user:password@": "a placeholder",
    "://ada:secret?se@": "characters that a URL must escape",
    "://ada:secret#se@": "characters that a URL must escape",
    "://ada:se%40cret@": "characters that a URL must escape",
}
"""Texts that look like a secret and are none, in addition to `SECRETS` below."""

SECRETS = [
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
NOT_SECRETS = [
    'token = "token-for-the-people-of-acme"',
    'secret_name = "mergeyard-database-url"',
    'TOKEN = re.compile(r"[0-9a-f]{40}")',
    'password: "${POSTGRES_PASSWORD:?set it}"',
    "https://user@example.org:8080/path",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQ",
]


@pytest.mark.parametrize("text", SECRETS)
def test_text_that_looks_like_a_secret_is_found(text: str):
    assert list(leaks(f"before {text} after"))


def test_token_of_mergeyard_is_found():
    assert list(leaks(f"curl -H 'x-api-token: {generate_secret()}'"))


@pytest.mark.parametrize("text", NOT_SECRETS)
def test_text_that_is_only_named_like_a_secret_is_not_found(text: str):
    assert list(leaks(text)) == []


def is_repository() -> bool:
    result = subprocess.run([*GIT, "rev-parse", "--git-dir"], capture_output=True, check=False)
    return result.returncode == 0


needs_git = pytest.mark.skipif(not is_repository(), reason="this is a copy without history")


def files() -> Iterator[tuple[str, bytes]]:
    """All files that are committed or would be."""
    listed = subprocess.run(
        [*GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True
    )
    for name in listed.stdout.decode().split("\0")[:-1]:
        if (ROOT / name).is_file():
            yield name, (ROOT / name).read_bytes()


def history() -> Iterator[tuple[str, bytes]]:
    """The content of every file in every commit, and every commit message."""
    listed = subprocess.run([*GIT, "rev-list", "--objects", "--all"], capture_output=True, check=True).stdout.decode()
    names = {line[:40]: line[41:] for line in listed.splitlines()}
    command = [*GIT, "cat-file", "--batch", "--buffer"]
    contents = subprocess.run(command, input="\n".join(names).encode(), capture_output=True, check=True).stdout
    position = 0
    while position < len(contents):
        end_of_line = contents.index(b"\n", position)
        sha, kind, size = contents[position:end_of_line].decode().split(" ")
        begin, position = end_of_line + 1, end_of_line + 1 + int(size) + 1
        if kind in {"blob", "commit"}:
            yield names[sha] or sha, contents[begin : position - 1]


def find_leaks(contents: Iterator[tuple[str, bytes]]) -> set[tuple[str, Leak]]:
    known = {*KNOWN_EXAMPLES, *SECRETS}
    return {
        (name, leak)
        for name, content in contents
        for leak in leaks(content.decode(errors="replace"))
        if not any(leak.text in each or each in leak.text for each in known)
    }


@needs_git
def test_no_file_contains_a_secret():
    assert find_leaks(files()) == set()


@needs_git
@pytest.mark.long
def test_no_secret_was_ever_committed():
    assert find_leaks(history()) == set()


@needs_git
@pytest.mark.parametrize("example", KNOWN_EXAMPLES)
def test_every_exception_is_still_needed(example: str):
    assert [name for name, content in files() if example.encode() in content and ROOT / name != Path(__file__)]
