"""A queue in a repository whose objects are named by SHA-256: the same as in any other, with ids of 64 digits."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from mergeyard.adapters.signing import SshKey
from mergeyard.cli.provenance import ProvenanceMismatch, verify_commit
from mergeyard.domain.config import Config, MergeMethod
from mergeyard.domain.ids import SHA256, SHA256_DIGITS
from mergeyard.ports.git import Identity
from mergeyard.service.git_names import parse_head_trailer
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Origin
from tests.support.scenario import KEY, MINUTE, SECOND, Scenario, ScenarioSetup, a_scenario

ADDRESS = "queue@example.org"
SIGNER = SshKey(Ed25519PrivateKey.generate())
IN_SHA256 = ScenarioSetup(object_format=SHA256)
OURS = "Mergeyard <mergeyard@example.org>"
MERGED = "merged: merged_by_queue"


def has_valid_signature(scenario: Scenario, commit: str) -> bool:
    """By the rules of git alone."""
    allowed = scenario.folder / "allowed_signers"
    allowed.write_text(f'{ADDRESS} namespaces="git" {SIGNER.public_key}\n')
    options = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed}")
    command = ["git", f"--git-dir={scenario.origin.path}", *options, "verify-commit", commit]
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(command, capture_output=True, check=False, env=environment).returncode == 0


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_a_batch_lands_and_one_that_fails_leaves(tmp_path: Path, method: MergeMethod):
    config = Config(merge_method=method, batch=True, batching_min_size=3)
    async with a_scenario(tmp_path, config, IN_SHA256) as scenario:
        scenario.open(1, 2, 3)
        scenario.push(2, {"more": "2\n"})
        heads = {number: scenario.origin.tip(f"feature{number}") for number in (1, 2, 3)}
        await scenario.submit(1, 2, 3)
        await scenario.report_all_runs(3)
        assert [await scenario.state(number) for number in (1, 2)] == [MERGED] * 2
        assert await scenario.state(3) == "failed: test_run_failed"
        assert scenario.origin.files("main").keys() >= {"file1", "file2", "more", "README"}
        assert "file3" not in scenario.origin.files("main")
        assert scenario.test_branches() == []
        merged = (await scenario.submission(2)).merged_sha
        assert merged is not None
        assert len(merged) == SHA256_DIGITS
        if method is MergeMethod.MERGE_COMMIT:
            assert scenario.origin.tip("feature2") == heads[2]
        else:
            (message,) = scenario.origin.log(merged, "%B")[-1:]
            assert parse_head_trailer(message) == heads[2]
            assert scenario.origin.tip("feature2") == merged


@pytest.mark.parametrize("method", list(MergeMethod))
@asynchronous
async def test_merges_are_audited_and_a_changed_one_is_found(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method), IN_SHA256) as scenario:
        scenario.open(1, 2)
        for number in (1, 2):
            await scenario.submit(number)
            await scenario.passes(number)
        report = await scenario.service.merge_auditor.audit_on_request(KEY, 20)
        assert [each.number for each in report.landings] == [1, 2]
        assert report.mismatches == ()
        before = scenario.origin.log("main", "%H")[-2]
        message = scenario.origin.log("main", "%B")[-1]
        scenario.origin.set_ref("main", before)
        scenario.origin.commit("main", {"planted": "by hand\n"}, message=message, committer=OURS)
        report = await scenario.service.merge_auditor.audit_on_request(KEY, 20)
        assert {each.number for each in report.mismatches} == {2}


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@asynchronous
async def test_git_and_the_verify_command_accept_signed_merges(tmp_path: Path):
    setup = replace(IN_SHA256, identity=Identity("Mergeyard", ADDRESS, SIGNER))
    key_file = tmp_path / "queue.pub"
    key_file.write_text(SIGNER.public_key)
    async with a_scenario(tmp_path, setup=setup) as scenario:
        for number, method in enumerate(MergeMethod, 1):
            await scenario.update(merge_method=method)
            scenario.open(number)
            await scenario.submit(number)
            await scenario.passes(number)
            assert await scenario.state(number) == MERGED
            commit = scenario.origin.tip("main")
            assert (await scenario.submission(number)).merged_sha == commit
            assert has_valid_signature(scenario, commit)
            verified = verify_commit(scenario.origin.path, commit, key_file)
            assert (verified.commit, verified.commit_keyid) == (commit, SIGNER.fingerprint)
            assert verified.statement.predicate.merge_method == method
        commit = scenario.origin.tip("main")
        content = scenario.origin.run("cat-file", "commit", commit) + b"One more line\n"
        forged = scenario.origin.run("hash-object", "-t", "commit", "-w", "--stdin", stdin=content).decode().strip()
        note = scenario.origin.run("notes", "--ref=mergeyard/provenance", "list", commit).decode().strip()
        scenario.origin.run("notes", "--ref=mergeyard/provenance", "add", "-C", note, forged)
        with pytest.raises(ProvenanceMismatch):
            verify_commit(scenario.origin.path, forged, key_file)


@asynchronous
async def test_a_queue_continues_after_its_repository_was_created_again_in_this_format(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.passes(1)
        shutil.rmtree(scenario.origin.path)
        scenario.origin = Origin.create(scenario.origin.path, SHA256)
        scenario.origin.commit("main", {".mergeyard.toml": IN_SHA256.repository_config})
        await scenario.advance_time(10 * MINUTE)
        scenario.open(2)
        await scenario.advance_time(2 * SECOND)
        await scenario.submit(2)
        await scenario.passes(2)
        assert await scenario.state(2) == MERGED
