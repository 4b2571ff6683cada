"""With a signing key, git verifies every commit that the service pushes; the key itself is nowhere else."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from mergeyard.adapters.signing import CHECK_INTERVAL_S, FileSigner, parse_signing_key
from mergeyard.domain.config import Config, MergeMethod, Mode
from mergeyard.domain.pull_requests import impacted_targets_from_names
from mergeyard.ports.git import Identity
from tests.support.asynchronous import asynchronous
from tests.support.log_capture import capture_entries
from tests.support.scenario import Scenario, ScenarioSetup, a_scenario

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")

ADDRESS = "queue@example.org"


def new_key() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def signed_with(key: bytes) -> ScenarioSetup:
    return ScenarioSetup(identity=Identity("Mergeyard", ADDRESS, parse_signing_key(key)))


def find_unverified(scenario: Scenario, *keys: bytes) -> list[str]:
    """The subjects of the commits by the service, on any branch, that git does not verify with these keys."""
    allowed = scenario.folder / "allowed_signers"
    lines = (f'{ADDRESS} namespaces="git" {parse_signing_key(key).public_key}\n' for key in keys)
    allowed.write_text("".join(lines))
    verify = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed}")
    command = ["git", f"--git-dir={scenario.origin.path}", *verify, "log", "--branches", "--format=%cn%x00%G?%x00%s"]
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    commits = [line.split("\0") for line in out.splitlines()]
    assert any(committer == "Mergeyard" for committer, _, _ in commits)
    assert all(verdict == "N" for committer, verdict, _ in commits if committer != "Mergeyard")
    return [subject for committer, verdict, subject in commits if committer == "Mergeyard" and verdict != "G"]


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_git_verifies_test_branches_and_merges(tmp_path: Path, method: MergeMethod):
    key = new_key()
    config = Config(merge_method=method, batch=True, batching_min_size=2)
    async with a_scenario(tmp_path, config, signed_with(key)) as scenario:
        scenario.open(1, 2, 3, 4)
        scenario.push(2, {"more": "2\n"})
        await scenario.submit(1, 2, 3, 4)
        assert find_unverified(scenario, key) == []
        assert find_unverified(scenario, new_key()) != []
        await scenario.report_all_runs()
        assert [await scenario.state(number) for number in (1, 2, 3, 4)] == ["merged: merged_by_queue"] * 4
        assert find_unverified(scenario, key) == []


@pytest.mark.long
@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_git_verifies_a_merge_that_was_rebased_onto_another(tmp_path: Path, method: MergeMethod):
    key = new_key()
    async with a_scenario(tmp_path, Config(mode=Mode.PARALLEL, merge_method=method), signed_with(key)) as scenario:
        scenario.open(1, 2)
        await scenario.upload_impacted_targets(1, impacted_targets_from_names("fe"))
        await scenario.upload_impacted_targets(2, impacted_targets_from_names("be"))
        await scenario.submit(1, 2)
        tested = scenario.run_of(2).tip
        await scenario.passes(1)
        await scenario.passes(2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        assert scenario.origin.tip("main") != tested
        assert find_unverified(scenario, key) == []


@pytest.mark.long
@asynchronous
async def test_a_new_key_signs_without_a_restart_and_a_broken_one_does_not(tmp_path: Path):
    file, seconds, old, new = tmp_path / "signing.key", [0.0], new_key(), new_key()
    file.touch(mode=0o600)
    file.write_bytes(old)
    signer = FileSigner(file, lambda: seconds[0])
    setup = ScenarioSetup(identity=Identity("Mergeyard", ADDRESS, signer))
    async with a_scenario(tmp_path, setup=setup) as scenario:
        for number, content in ((1, old), (2, b"not a key"), (3, new)):
            file.write_bytes(content)
            seconds[0] += CHECK_INTERVAL_S
            scenario.open(number)
            await scenario.submit(number)
            await scenario.passes(number)
            assert await scenario.state(number) == "merged: merged_by_queue"
        assert find_unverified(scenario, old) == ["Merge pull request #3: Change 3"]
        assert find_unverified(scenario, old, new) == []


@asynchronous
async def test_the_key_is_in_no_log_no_journal_and_no_repository(tmp_path: Path):
    """A part of the key in a damaged file is not logged either."""
    key, file, seconds = Ed25519PrivateKey.generate(), tmp_path / "signing.key", [0.0]
    content = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    secrets = [key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()), *content.splitlines()[2:-1]]
    file.write_bytes(content)
    setup = ScenarioSetup(identity=Identity("Mergeyard", ADDRESS, FileSigner(file, lambda: seconds[0])))
    with capture_entries() as logs:
        async with a_scenario(tmp_path / "yard", setup=setup) as scenario:
            scenario.open(1, 2)
            await scenario.submit(1)
            file.write_bytes(content[:-60])
            seconds[0] += CHECK_INTERVAL_S
            await scenario.submit(2)
            await scenario.passes(1)
            await scenario.fails(2)
            shown = repr((scenario.service.repositories.signer_of("git.local"), setup, vars(scenario.service)))
            assert find_unverified(scenario, content) == []
    stored = b"".join(path.read_bytes() for path in (tmp_path / "yard").rglob("*") if path.is_file())
    everything = stored + repr(logs).encode() + shown.encode()
    assert "signing_key_not_changed" in [entry["event"] for entry in logs]
    assert b"FileSigner(" in everything
    assert not [secret for secret in secrets if secret in everything]
