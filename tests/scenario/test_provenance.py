"""Every merge of a queue with a signing key has its statement in a git note: once, also after crashes and outages."""

import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from mergeyard.adapters.signing import NEVER, SshKey, parse_signing_key
from mergeyard.cli.provenance import NoProvenanceError, Verified, verify_commit
from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Sha
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.git import Identity
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.host_lists import CACHE_MS
from mergeyard.service.merge_marker import GIVE_UP_AFTER_MS
from mergeyard.service.provenance import (
    CONSUMER_OPTIONS,
    MISSING_AFTER_MS,
    NOTES_REF,
    PAYLOAD_TYPE,
    ProvenanceWriter,
)
from mergeyard.service.submissions import SubmitOptions
from tests.support.asynchronous import asynchronous
from tests.support.log_capture import capture_warnings
from tests.support.openpgp import to_pgp_file
from tests.support.push_hooks import (
    AFTER_UPDATE,
    PushGate,
    kill_pusher_after_update,
    refuse_pushes,
    remove_hooks,
)
from tests.support.scenario import KEY, MINUTE, REPO, Scenario, ScenarioSetup, a_scenario

SIGNER = SshKey(Ed25519PrivateKey.generate())
SIGNED = ScenarioSetup(identity=Identity("Mergeyard", "queue@example.org", SIGNER), poll_interval_ms=60 * MINUTE)
NOTES_PUSH = f"*' {NOTES_REF}'*"


def verify(scenario: Scenario, commit: str = "main") -> Verified:
    """With git and the public key only."""
    key_file = scenario.folder / "queue.pub"
    key_file.write_text(SIGNER.public_key)
    return verify_commit(scenario.origin.path, commit, key_file)


def count_note_commits(scenario: Scenario) -> int:
    return len(scenario.origin.log(NOTES_REF, "%H"))


async def merge(scenario: Scenario, *numbers: int) -> None:
    scenario.open(*numbers)
    await scenario.submit(*numbers)
    await scenario.report_all_runs()


@asynchronous
@pytest.mark.parametrize("method", list(MergeMethod))
async def test_a_merge_has_a_statement_that_git_and_the_public_key_verify(tmp_path: Path, method: MergeMethod):
    async with a_scenario(tmp_path, Config(merge_method=method), SIGNED) as scenario:
        await merge(scenario, 1)
        verified = verify(scenario)
        assert (verified.keyid, verified.commit_keyid) == (SIGNER.fingerprint, SIGNER.fingerprint)
        predicate, submission = verified.statement.predicate, await scenario.submission(1)
        assert verified.commit == submission.merged_sha
        assert (predicate.pull_request.number, predicate.pull_request.author) == (1, "Ada")
        assert (predicate.submitted_by, predicate.landing, predicate.merge_method) == ("ada", "tested_commit", method)
        assert predicate.test_run is not None
        assert (predicate.test_run.id, predicate.test_run.result) == (submission.verified_by, "succeeded")
        assert predicate.test_run.tested_commit == submission.merged_sha
        assert [(check.name, check.state, check.required) for check in predicate.test_run.checks] == [
            ("unit", "passed", True)
        ]


@asynchronous
async def test_every_member_of_a_batch_has_its_own_statement(tmp_path: Path):
    async with a_scenario(tmp_path, Config(batch=True, batching_min_size=3), SIGNED) as scenario:
        scenario.open(1, 2, 3)
        await scenario.submit(1, 2, 3)
        await scenario.report_all_runs()
        for number in (1, 2, 3):
            commit = (await scenario.submission(number)).merged_sha
            assert commit is not None
            predicate = verify(scenario, commit).statement.predicate
            assert predicate.pull_request.number == number
            assert predicate.test_run is not None
            assert [member.number for member in predicate.test_run.stack] == [1, 2, 3]


@asynchronous
async def test_a_merge_by_the_git_host_and_a_direct_one_are_described_as_such(tmp_path: Path):
    async with a_scenario(tmp_path, Config(landing=LandingMethod.PROVIDER_MERGE), SIGNED) as scenario:
        await merge(scenario, 1)
        assert verify(scenario).statement.predicate.landing == "provider_merge"
        await scenario.update(landing=LandingMethod.TESTED_COMMIT, direct_merge_mode=DirectMergeMode.ALWAYS)
        scenario.open(2)
        await scenario.report_without_waiting(scenario.origin.tip("feature2"))
        await scenario.submit(2)
        assert await scenario.state(2) == "merged: merged_directly"
        verified = verify(scenario)
        assert verified.commit_keyid == SIGNER.fingerprint
        predicate = verified.statement.predicate
        assert predicate.reason == "merged_directly"
        assert predicate.test_run is not None
        assert predicate.test_run.checked_commit == predicate.pull_request.head


@asynchronous
async def test_without_a_key_nothing_is_written(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario:
        await merge(scenario, 1)
        assert scenario.origin.ref(NOTES_REF) is None
        with pytest.raises(NoProvenanceError):
            verify(scenario)


@asynchronous
async def test_a_pull_request_that_fails_has_no_statement(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.fails(1)
        assert scenario.origin.ref(NOTES_REF) is None


@asynchronous
async def test_the_commits_of_the_notes_are_signed(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        await merge(scenario, 1)
        assert b"gpgsig -----BEGIN SSH SIGNATURE-----" in scenario.origin.run("cat-file", "commit", NOTES_REF)


@asynchronous
async def test_stop_between_the_merge_and_its_note(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        gate = PushGate(scenario.origin, NOTES_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        await scenario.service.stop()
        assert "#1" in scenario.origin.subjects("main")[-1]
        assert scenario.origin.ref(NOTES_REF) is None
        remove_hooks(scenario.origin)
        await scenario.start()
        assert verify(scenario).statement.predicate.pull_request.number == 1
        assert count_note_commits(scenario) == 1


@pytest.mark.long
@asynchronous
async def test_a_replica_without_the_commits_writes_the_notes_of_the_other(tmp_path: Path):
    """A commit that is gone everywhere does not keep back the others, and is given up after some minutes."""
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        refuse_pushes(scenario.origin, NOTES_PUSH, "notes are not allowed")
        await merge(scenario, 1)
        await merge(scenario, 2)
        lost = scenario.origin.tip("main")
        await scenario.service.stop()
        remove_hooks(scenario.origin)
        scenario.origin.set_ref("main", scenario.origin.run("rev-parse", "main^").decode().strip())
        scenario.origin.run("prune", "--expire=now")
        shutil.rmtree(scenario.folder / "mirrors")
        await scenario.start()
        assert verify(scenario).statement.predicate.pull_request.number == 1
        with pytest.raises(NoProvenanceError):
            verify(scenario, lost)
        with capture_warnings() as logs:
            await scenario.advance_time(MISSING_AFTER_MS + CONSUMER_OPTIONS.max_retry_delay_ms)
        given_up = [entry for entry in logs if entry["event"] == "provenance_given_up"]
        assert [(entry["numbers"], "does not have the merged commit" in entry["error"]) for entry in given_up] == [
            ([2], True)
        ]
        written = count_note_commits(scenario)
        await scenario.advance_time(60 * MINUTE)
        assert count_note_commits(scenario) == written == 1


@asynchronous
async def test_a_merge_whose_record_was_deleted_has_no_statement(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        await merge(scenario, 1)
        before, (actor,) = scenario.origin.tip(NOTES_REF), scenario.service.registry
        entries = await scenario.store.entries(actor.queue.id, 0, 100)
        unknown = [
            replace(entry, body=entry.body.replace(b'"submission_id":"', b'"submission_id":"x')) for entry in entries
        ]
        assert unknown != entries
        writer = ProvenanceWriter(scenario.store, scenario.clock, scenario.service.repositories)
        await writer.consume(KEY, actor.queue.id, unknown)
        assert scenario.origin.tip(NOTES_REF) == before


@asynchronous
async def test_stop_between_the_note_and_the_record_of_it(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        gate = PushGate(scenario.origin, NOTES_PUSH, AFTER_UPDATE)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        before = scenario.origin.tip(NOTES_REF)
        await scenario.service.stop()
        remove_hooks(scenario.origin)
        scenario.clock.move_to(Instant(scenario.clock.now() + MINUTE))
        await scenario.start()
        assert scenario.origin.tip(NOTES_REF) == before, "the repetition writes the same bytes, so it pushes nothing"
        assert verify(scenario).commit == scenario.origin.tip("main")


@asynchronous
async def test_a_push_whose_response_is_lost_writes_the_note_once(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        kill_pusher_after_update(scenario.origin, NOTES_PUSH)
        await merge(scenario, 1)
        remove_hooks(scenario.origin)
        await scenario.advance_time(MINUTE)
        assert verify(scenario).commit == scenario.origin.tip("main")
        assert count_note_commits(scenario) == 1


@asynchronous
async def test_a_note_that_another_writer_pushes_at_the_same_time_stays(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        gate = PushGate(scenario.origin, NOTES_PUSH)
        scenario.open(1)
        await scenario.submit(1)
        await scenario.report_without_waiting(scenario.run_of(1).tip)
        await gate.wait_for_push()
        other = scenario.origin.tip("feature1")
        scenario.origin.run("notes", f"--ref={NOTES_REF}", "add", "-m", "by another", other)
        gate.open()
        await scenario.wait_until_idle()
        assert verify(scenario).commit == scenario.origin.tip("main")
        assert scenario.origin.run("notes", f"--ref={NOTES_REF}", "show", other) == b"by another\n"


@asynchronous
async def test_a_note_that_others_wrote_for_the_merged_commit_is_replaced(tmp_path: Path):
    """Everyone who can push sees the commit on its test branch before it merges."""
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        scenario.open(1)
        await scenario.submit(1)
        forged = scenario.run_of(1).tip
        scenario.origin.run("notes", f"--ref={NOTES_REF}", "add", "-m", "forged", forged)
        await scenario.report_all_runs()
        assert verify(scenario).commit == forged


@asynchronous
async def test_two_queues_of_a_repository_share_the_notes(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        scenario.origin.branch("release", base="main")
        release = QueueKey(REPO, "release")
        await scenario.create_queue(key=release)
        scenario.open(1)
        scenario.open(2, base="release")
        scenario.set_pull_request(2, base="release")
        await scenario.submit(1)
        await scenario.service.submissions.submit(scenario.build_command(2, release), SubmitOptions())
        await scenario.wait_until_idle()
        runs = [run for actor in scenario.service.registry for run in actor.queue.runs.values()]
        for run in runs:
            await scenario.report_without_waiting(run.tip)
        await scenario.wait_until_idle()
        assert verify(scenario, "main").statement.predicate.branch == "refs/heads/main"
        assert verify(scenario, "release").statement.predicate.branch == "refs/heads/release"


@asynchronous
async def test_a_git_host_that_refuses_the_notes_does_not_stop_the_queue(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        refuse_pushes(scenario.origin, NOTES_PUSH, "notes are not allowed")
        await merge(scenario, 1)
        await merge(scenario, 2)
        assert await scenario.state(2) == "merged: merged_by_queue"
        remove_hooks(scenario.origin)
        await scenario.advance_time(11 * MINUTE)
        assert verify(scenario).statement.predicate.pull_request.number == 2
        assert verify(scenario, (await scenario.submission(1)).merged_sha or "").keyid == SIGNER.fingerprint


@asynchronous
async def test_the_statement_of_a_merge_after_the_end_of_the_key_waits_for_an_extended_key(tmp_path: Path):
    """A signature after the end of its key would never be valid."""
    signer = parse_signing_key(to_pgp_file(Ed25519PrivateKey.generate()).encode())
    identity = Identity("Mergeyard", "queue@example.org", signer)
    async with a_scenario(tmp_path, setup=replace(SIGNED, identity=identity)) as scenario:
        signer.expires_at = scenario.clock.now() / 1000
        await merge(scenario, 1)
        assert await scenario.state(1) == "merged: merged_by_queue"
        assert scenario.origin.ref(NOTES_REF) is None
        signer.expires_at = NEVER
        await scenario.advance_time(11 * MINUTE)
        key_file = scenario.folder / "queue.pub"
        key_file.write_text(signer.public_key)
        assert verify_commit(scenario.origin.path, "main", key_file).keyid == signer.fingerprint


@asynchronous
async def test_after_a_day_a_refused_note_is_given_up_and_later_ones_are_written(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        refuse_pushes(scenario.origin, NOTES_PUSH, "notes are not allowed")
        await merge(scenario, 1)
        await scenario.service.stop()
        scenario.clock.move_to(Instant(scenario.clock.now() + GIVE_UP_AFTER_MS))
        await scenario.start()
        remove_hooks(scenario.origin)
        await merge(scenario, 2)
        assert verify(scenario).statement.predicate.pull_request.number == 2
        with pytest.raises(NoProvenanceError):
            verify(scenario, (await scenario.submission(1)).merged_sha or "")


@asynchronous
async def test_the_service_reads_the_published_statement(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        await merge(scenario, 1)
        read = scenario.service.provenance
        commit = await read.find_commit(KEY, PullRequestNumber(1))
        assert commit == scenario.origin.tip("main")
        envelope = await read.read(KEY, commit)
        assert (envelope.payload_type, envelope.signatures[0].keyid) == (PAYLOAD_TYPE, SIGNER.fingerprint)


@asynchronous
async def test_what_has_no_statement_is_refused_with_advice(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        read = scenario.service.provenance
        with pytest.raises(RequestRefused, match="has no provenance for"):
            await read.read(KEY, Sha("1" * 40))
        scenario.open(1)
        await scenario.submit(1)
        with pytest.raises(RequestRefused, match="has not merged pull request 1") as caught:
            await read.find_commit(KEY, PullRequestNumber(1))
        assert caught.value.code is Code.COMMIT_NOT_FOUND
        await scenario.report_all_runs()
        await scenario.advance_time(CACHE_MS)
        commit = scenario.origin.tip("main")
        scenario.origin.run("notes", f"--ref={NOTES_REF}", "add", "-f", "-m", "changed", commit)
        with pytest.raises(RequestRefused, match="is not provenance"):
            await read.read(KEY, commit)


@asynchronous
async def test_notes_are_fetched_once_in_some_seconds(tmp_path: Path):
    async with a_scenario(tmp_path, setup=SIGNED) as scenario:
        await merge(scenario, 1)
        commit, read = scenario.origin.tip("main"), scenario.service.provenance.read
        found = await read(KEY, commit)
        scenario.origin.run("update-ref", "-d", NOTES_REF)
        assert await read(KEY, commit) == found
        await scenario.advance_time(CACHE_MS)
        with pytest.raises(RequestRefused, match="has no provenance for"):
            await read(KEY, commit)
