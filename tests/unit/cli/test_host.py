"""`mergeyard host check` shows what is missing in red, and the key that signs commits."""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from typer.testing import CliRunner, Result

from mergeyard.adapters.signing import parse_signing_key
from mergeyard.cli import app
from tests.support.repositories import Origin

RED = "\x1b[31m"
NOT_SIGNED = "Commits are not signed: the settings contain no signing_key_file for this host."


def test_missing_repositories_are_shown_in_red(tmp_path: Path):
    Origin.create(tmp_path / "repos" / "acme" / "app.git")
    config = tmp_path / "mergeyard.toml"
    config.write_text('[hosts."git.local"]\nprovider = "git"\nroot = "repos"\n')

    def check(repo: str) -> tuple[int, str]:
        command = ["host", "check", "git.local", "--repo", repo, "--config", str(config)]
        result = CliRunner().invoke(app, command, color=True)
        return result.exit_code, result.output

    code, output = check("acme/lib")
    assert (code, output.startswith(f"{RED}✗ There is no repository")) == (1, True)
    code, output = check("acme/app")
    assert (code, output) == (0, f"✓ git.local/acme/app exists.\x1b[0m\n✓ {NOT_SIGNED}\x1b[0m\n")
    command = ["host", "check", "git.local/acme/app", "--config", str(config)]
    assert CliRunner().invoke(app, command).stdout == f"✓ git.local/acme/app exists.\n✓ {NOT_SIGNED}\n"
    command = ["host", "check", "git.local", "--repo", "acme/app", "--config", str(config), "--json"]
    found = [
        {"ok": True, "message": message, "advice": False} for message in ("git.local/acme/app exists.", NOT_SIGNED)
    ]
    assert json.loads(CliRunner().invoke(app, command).stdout) == {"host": "git.local", "findings": found}


def check_signing(tmp_path: Path, key: str, *options: str) -> Result:
    (tmp_path / "repos").mkdir(exist_ok=True)
    if not (tmp_path / "signing.key").exists():
        (tmp_path / "signing.key").touch(mode=0o600)
        (tmp_path / "signing.key").write_text(key)
    config = tmp_path / "mergeyard.toml"
    config.write_text('[hosts."git.local"]\nprovider = "git"\nroot = "repos"\nsigning_key_file = "signing.key"\n')
    return CliRunner().invoke(app, ["host", "check", "git.local", "--config", str(config), *options])


def test_the_key_that_signs_commits_is_shown_with_a_line_that_verifies_them(tmp_path: Path):
    key = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    signer = parse_signing_key(key.encode())
    shown = check_signing(tmp_path, key)
    assert shown.exit_code == 0
    assert f"✓ Commits are signed with the key {signer.fingerprint}." in shown.stdout
    assert f'allowed-signers file: mergeyard namespaces="git" {signer.public_key}\n' in shown.stdout
    assert check_signing(tmp_path, key, "--public-key").stdout == f"{signer.public_key}\n"
    assert not any(line in shown.output for line in key.splitlines()[1:-1])


def test_a_key_that_cannot_sign_is_named_without_its_contents(tmp_path: Path):
    refused = check_signing(tmp_path, "c2VjcmV0", "--public-key")
    assert refused.exit_code != 0
    assert "signing.key has no private key in a known format; create one with: ssh-keygen" in " ".join(
        refused.output.split()
    )
    assert "c2VjcmV0" not in refused.output


def test_a_host_without_a_key_has_no_public_key(tmp_path: Path):
    (tmp_path / "repos").mkdir()
    config = tmp_path / "mergeyard.toml"
    config.write_text('[hosts."git.local"]\nprovider = "git"\nroot = "repos"\n')
    found = CliRunner().invoke(app, ["host", "check", "git.local", "--config", str(config), "--public-key"])
    assert found.exit_code == 1
    assert "Commits on git.local are not signed." in found.output
    assert 'Set signing_key_file in the table [hosts."git.local"].' in found.output
