"""The statement about a merge: what it says, and that the same merge always gives the same bytes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from mergeyard import __version__
from mergeyard.adapters.signing import SshKey, parse_signing_key
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import QueueKey, Repo, Sha
from mergeyard.domain.pull_requests import Requirement, Submission
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState, PullRequestState, Reason, RunStatus
from mergeyard.domain.timestamps import Instant
from mergeyard.ports.git import Commit, Signature, Signer
from mergeyard.service import provenance
from mergeyard.service.merge_audit.records import RecordedMerge
from mergeyard.service.provenance import CheckResult, Merge, RuleState, SourceProvenance, StackedPullRequest
from tests.support.builders import a_pull_request, a_run, a_submission
from tests.support.openpgp import to_pgp_file

KEY = SshKey(Ed25519PrivateKey.generate())
PGP_KEY = parse_signing_key(to_pgp_file(Ed25519PrivateKey.generate()).encode())

MERGED_AT = Instant(1_763_470_800_123)
ADA = Signature("A", "a@b", "0 +0000")
COMMIT = Commit(Sha("1+2"), (Sha("1"),), Sha("tree of 1+2"), ADA, ADA, "Merge")


def passed_run(**changes: Any) -> Run:
    checks = {"unit": CheckState.PASSED, "lint": CheckState.FAILED, "docs": CheckState.NEUTRAL}
    run = a_run(1, 2, tests=1, status=RunStatus.SUCCEEDED)
    return replace(run, required_statuses=("unit", "docs"), checks=checks, decided_at=MERGED_AT, **changes)


def merged_submission(**changes: Any) -> Submission:
    merged = {"merged_sha": COMMIT.sha, "reason": Reason.MERGED_BY_QUEUE, "state": PullRequestState.MERGED}
    return replace(a_submission(2), **merged | changes)


def describe(submission: Submission, run: Run | None) -> SourceProvenance:
    return build(submission, run).predicate


def build(submission: Submission, run: Run | None) -> provenance.Statement:
    return provenance.build_statement(
        Merge(
            key=QueueKey(Repo("git.local", "acme", "app"), "main"),
            record=RecordedMerge(submission=submission, run=run),
            commit=COMMIT,
            url="https://git.local/acme/app/pulls/2",
            submitted_by="ada",
            merged_at=MERGED_AT,
        )
    )


def test_the_subject_is_the_merged_commit():
    (subject,) = build(merged_submission(), passed_run()).subject
    assert (subject.name, subject.digest) == ("git.local/acme/app", {"gitCommit": COMMIT.sha})


def test_the_statement_names_commit_pull_request_and_times():
    pull_request = replace(a_pull_request(2), title="Fix it", author="bob", head_branch="fix")
    found = describe(merged_submission(pull_request=pull_request), passed_run())
    assert (found.branch, found.tree, found.parents) == ("refs/heads/main", COMMIT.tree, COMMIT.parents)
    assert (found.pull_request.number, found.pull_request.title, found.pull_request.author) == (2, "Fix it", "bob")
    assert (found.pull_request.url, found.pull_request.head_branch) == ("https://git.local/acme/app/pulls/2", "fix")
    assert found.merged_at == datetime(2025, 11, 18, 13, 0, 0, 123000, tzinfo=UTC)
    assert (found.submitted_by, found.reason, found.mergeyard_version) == ("ada", "merged_by_queue", __version__)


def test_the_head_is_the_tested_one_after_the_head_branch_was_moved():
    tested = passed_run().stack[1].head
    moved = replace(a_pull_request(2), head=COMMIT.sha)
    assert describe(merged_submission(pull_request=moved), passed_run()).pull_request.head == tested


def test_the_run_is_described_with_what_it_tested():
    run = passed_run()
    found = describe(merged_submission(), run).test_run
    assert found is not None
    assert (found.id, found.result, found.base) == (run.id, "succeeded", run.base)
    assert found.stack == tuple(StackedPullRequest(number=member.number, head=member.head) for member in run.stack)
    assert (found.tested_commit, found.tested_tree) == (run.chain[1].commit, run.chain[1].tree)
    assert found.checked_commit == run.tip


def test_required_checks_come_first_and_none_is_left_out():
    found = describe(merged_submission(), passed_run()).test_run
    assert found is not None
    assert found.checks == (
        CheckResult(name="docs", state="neutral", required=True),
        CheckResult(name="unit", state="passed", required=True),
        CheckResult(name="lint", state="failed", required=False),
    )


def test_a_required_check_without_a_report_is_shown_as_missing():
    found = describe(merged_submission(), replace(passed_run(), checks={"unit": CheckState.PASSED})).test_run
    assert found is not None
    assert found.checks[0] == CheckResult(name="docs", state="missing", required=True)


def test_names_and_numbers_of_checks_are_limited():
    names = {f"{at:04}{'x' * 1000}": CheckState.PASSED for at in range(2000)}
    found = describe(merged_submission(), replace(passed_run(), checks=names)).test_run
    assert found is not None
    assert found.checks_left_out == 2002 - len(found.checks) > 1000
    assert {len(check.name) for check in found.checks if not check.required} == {provenance.MAX_TEXT_CHARS}
    assert [check.required for check in found.checks[:3]] == [True, True, False]
    names = {f"{at:04}": CheckState.PASSED for at in range(2000)}
    found = describe(merged_submission(), replace(passed_run(), checks=names)).test_run
    assert found is not None
    assert (len(found.checks), found.checks_left_out) == (provenance.MAX_CHECKS, 1002)


def test_a_note_is_never_larger_than_readers_accept():
    """Names of 500 characters that need six bytes each, in every list."""
    long = "\x01" * 5000
    names = {f"{at:04}{long}": CheckState.PASSED for at in range(2000)}
    members = replace(a_run(*range(1, 1001)), checks=names, required_statuses=tuple(names))
    rules = tuple(Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=3) for _ in range(200))
    pull_request = replace(a_pull_request(2), title=long, author=long, requirements=rules)
    note = provenance.sign_statement(build(merged_submission(pull_request=pull_request), members), KEY)
    assert len(note) < provenance.MAX_NOTE_BYTES


def test_a_few_checks_are_all_listed():
    found = describe(merged_submission(), passed_run()).test_run
    assert found is not None
    assert found.checks_left_out == 0


def test_checks_of_the_head_are_described_as_such():
    """The queue merged directly: no test branch was tested."""
    run = passed_run(used_head_checks=True)
    found = describe(merged_submission(reason=Reason.MERGED_DIRECTLY), run)
    assert found.reason == "merged_directly"
    assert found.test_run is not None
    assert found.test_run.checked_commit == run.stack[-1].head


def test_rules_are_recorded_with_what_was_given():
    rules = (
        Requirement(reason=Reason.WAITING_FOR_REVIEW, needed=2, given=2, given_by=("@ada", "@bob")),
        Requirement(reason=Reason.WAITING_FOR_CODE_OWNER, needed=1, given=None, blocks_if_unknown=False),
        Requirement(reason=Reason.CHANGES_REQUESTED, needed=1, given=0),
    )
    pull_request = replace(a_pull_request(2), requirements=rules)
    found = describe(merged_submission(pull_request=pull_request, forced=True), passed_run())
    assert found.rules == (
        RuleState(code="waiting_for_review", needed=2, given=2, given_by=("@ada", "@bob"), met=True),
        RuleState(code="waiting_for_code_owner", needed=1, given=None, given_by=(), met=True),
        RuleState(code="changes_requested", needed=1, given=0, given_by=(), met=False),
    )
    assert found.forced


def test_the_form_of_the_landing():
    assert describe(merged_submission(), passed_run()).landing == "tested_commit"
    assert describe(merged_submission(rebased=True), passed_run()).landing == "rebased"
    by_host = passed_run(landing_method=LandingMethod.PROVIDER_MERGE)
    assert describe(merged_submission(), by_host).landing == "provider_merge"


def test_a_merge_by_the_git_host_after_another_one_is_described_as_such():
    """A parallel queue rebases what it tested, but here the Git host makes and signs the commit."""
    by_host = passed_run(landing_method=LandingMethod.PROVIDER_MERGE)
    assert describe(merged_submission(rebased=True), by_host).landing == "provider_merge"


def test_a_run_whose_record_was_deleted_is_left_out():
    found = describe(merged_submission(), None)
    assert (found.test_run, found.merge_method) == (None, None)


@pytest.mark.parametrize("key", [KEY, PGP_KEY], ids=["ssh", "openpgp"])
def test_a_repetition_is_signed_in_the_same_way(key: Signer, monkeypatch: pytest.MonkeyPatch):
    """At the time of the merge, so that it is not pushed again."""
    first = provenance.sign_statement(build(merged_submission(), passed_run()), key)
    monkeypatch.setattr("time.time", lambda: 2_000_000_000)
    assert provenance.sign_statement(build(merged_submission(), passed_run()), key) == first


class ChangingSigner:
    """Its key changes before every call."""

    expires_at = float("inf")

    def __init__(self) -> None:
        self._keys = (SshKey(Ed25519PrivateKey.generate()) for _ in range(9))

    @property
    def public_key(self) -> str:
        return next(self._keys).public_key

    @property
    def fingerprint(self) -> str:
        return next(self._keys).fingerprint

    def sign(self, payload: bytes, namespace: str) -> str:
        return next(self._keys).sign(payload, namespace)

    def sign_bytes(self, payload: bytes, at: int) -> tuple[str, bytes]:
        self.used = next(self._keys)
        return self.used.sign_bytes(payload, at)


def test_a_note_names_the_key_that_signed_it_also_while_the_key_changes():
    signer = ChangingSigner()
    note = provenance.decode_envelope(provenance.sign_statement(build(merged_submission(), passed_run()), signer))
    assert note.signatures[0].keyid == signer.used.fingerprint


def test_the_same_merge_gives_the_same_bytes():
    first, second = (provenance.encode(build(merged_submission(), passed_run())) for _ in range(2))
    assert first == second
    assert provenance.decode_statement(first) == build(merged_submission(), passed_run())
