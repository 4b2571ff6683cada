"""A real server signs its commits with the key in its settings, and with the next key without a restart."""

import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.adapters.signing import parse_signing_key
from tests.support.environment import ServerEnvironment

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")

MAX_MERGES = 50
"""The server looks for a new key once a second."""


def new_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def merge_and_read_signer(env: ServerEnvironment, name: str, *keys: bytes) -> str:
    """The fingerprint of the key that git verifies the merge with."""
    number = env.open_pr({name: "1"})
    env.submit(number)
    env.wait_for("merged", number)
    allowed = env.server.folder / "allowed_signers"
    allowed.write_text("".join(f"queue {parse_signing_key(key).public_key}\n" for key in keys))
    verify = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed}")
    verdict, fingerprint = env.origin.run(*verify, "log", "-1", "--format=%G? %GF", "main").decode().split()
    assert verdict == "G"
    return fingerprint


@pytest.mark.long
def test_a_server_signs_and_takes_the_next_key_while_it_runs(tmp_path: Path):
    env = ServerEnvironment.start(tmp_path)
    try:
        env.server.stop()
        key_file, old, new = tmp_path / "signing.key", new_key(), new_key()
        key_file.touch(mode=0o600)
        key_file.write_bytes(old)
        env.server.config.write_text(f'{env.server.config.read_text()}signing_key_file = "signing.key"\n')
        env.server.start()
        env.create_queue()
        assert merge_and_read_signer(env, "first", old, new) == parse_signing_key(old).fingerprint
        key_file.write_bytes(new)
        signers = (merge_and_read_signer(env, f"file{count}", old, new) for count in range(MAX_MERGES))
        assert parse_signing_key(new).fingerprint in signers
        logged = "".join(map(str, env.server.log_entries()))
        assert not [line for line in (old + new).decode().splitlines() if len(line) > 40 and line in logged]
    finally:
        env.close()
