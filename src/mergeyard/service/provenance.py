"""Provenance: a signed statement about every merge, published as a git note of the merged commit.

The statement is an in-toto Statement v1 in a DSSE envelope. The source track of SLSA leaves the contents of source
provenance to the system that produces it and asks it to document them, so the type of the predicate is our own.
"""

import asyncio
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec
import structlog
from msgspec import MsgspecError, Struct, field

from mergeyard import __version__
from mergeyard.domain.config import LandingMethod
from mergeyard.domain.ids import PullRequestNumber, QueueId, QueueKey, Sha, SubmissionId
from mergeyard.domain.journal import PullRequestChanged
from mergeyard.domain.pull_requests import PullRequest, Requirement
from mergeyard.domain.runs import Run
from mergeyard.domain.states import Reason
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostError
from mergeyard.ports.git import (
    Commit,
    GitError,
    LimitExceededError,
    Mirror,
    MissingObject,
    Pushed,
    PushRefused,
    RefUpdate,
    Signer,
)
from mergeyard.ports.store import Store, StoredEntry
from mergeyard.service import persistence
from mergeyard.service.audit_log import decode_actor_name
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import branch_ref
from mergeyard.service.host_lists import ShortCache
from mergeyard.service.merge_audit.records import LandingForm, RecordedMerge
from mergeyard.service.merge_marker import GIVE_UP_AFTER_MS, has_landing_changed
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repositories import Repositories
from mergeyard.service.submission_queries import SubmissionQueries
from mergeyard.service.webhooks.journal_consumers import ConsumerOptions, PartiallyDelivered

log = structlog.get_logger()

NOTES_REF = "refs/notes/mergeyard/provenance"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:mergeyard:source-provenance:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_NOTE_BYTES = 1024 * 1024
MAX_TEXT_CHARS = 500
"""Of a title, and of each name that a Git host or a CI chose."""
MAX_CHECKS = 1000
MAX_CHECKS_BYTES = 256 * 1024
"""Of the list of checks. The required checks come first."""


class Document(Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the statement. Its members are written in the order of the fields, so that the same merge always gives
    the same bytes."""


class MergedPullRequest(Document, frozen=True, kw_only=True):
    number: int
    url: str | None
    title: str
    author: str
    head: str
    """The head that was tested and merged."""
    head_branch: str


class RuleState(Document, frozen=True, kw_only=True):
    """A rule of the Git host, as the queue last read it before the merge. `given` is null if the rule is not shown."""

    code: str
    needed: int
    given: int | None
    given_by: tuple[str, ...]
    """The accounts whose approvals counted, if the Git host shows them."""
    met: bool


class StackedPullRequest(Document, frozen=True, kw_only=True):
    number: int
    head: str


class CheckResult(Document, frozen=True, kw_only=True):
    name: str
    state: str
    required: bool


class TestRun(Document, frozen=True, kw_only=True):
    __test__ = False
    id: str
    result: str
    base: str
    """The commit of the target branch that the run was built on."""
    stack: tuple[StackedPullRequest, ...]
    """The pull requests in the tested commit, in the order of their commits."""
    tested_commit: str | None
    """What this pull request became in the run; the merged commit itself, unless the merge was rebased or made by the
    Git host."""
    tested_tree: str | None
    checked_commit: str | None
    """The commit that the checks ran on: the last one of the run, or the head of the pull request."""
    checks: tuple[CheckResult, ...]
    checks_left_out: int
    """How many checks are not listed, because the list would be too long."""
    started_at: datetime | None
    decided_at: datetime | None


class SourceProvenance(Document, frozen=True, kw_only=True):
    """The predicate."""

    repository: str
    """`host/owner/name`."""
    branch: str
    tree: str
    parents: tuple[str, ...]
    pull_request: MergedPullRequest
    submitted_by: str | None
    submitted_at: datetime
    forced: bool
    """The pull request was submitted with the order not to wait for the rules of the Git host."""
    rules: tuple[RuleState, ...]
    merge_method: str | None
    landing: str
    """`tested_commit`, `rebased` or `provider_merge`."""
    reason: str
    merged_at: datetime
    test_run: TestRun | None
    mergeyard_version: str = __version__


class Subject(Document, frozen=True, kw_only=True):
    name: str
    digest: dict[str, str]


class Statement(Document, frozen=True, kw_only=True):
    type: str = field(name="_type", default=STATEMENT_TYPE)
    subject: tuple[Subject, ...]
    predicate_type: str = PREDICATE_TYPE
    predicate: SourceProvenance


class EnvelopeSignature(Document, frozen=True, kw_only=True):
    keyid: str
    sig: str


class Envelope(Document, frozen=True, kw_only=True):
    payload_type: str
    payload: str
    signatures: tuple[EnvelopeSignature, ...]


encode = msgspec.json.Encoder().encode
decode_envelope = msgspec.json.Decoder(Envelope).decode
decode_statement = msgspec.json.Decoder(Statement).decode


def sign_statement(statement: Statement, signer: Signer) -> bytes:
    """The envelope, as it is written into the note."""
    payload = encode(statement)
    at = int(statement.predicate.merged_at.timestamp())
    keyid, signature = signer.sign_bytes(encode_for_signature(PAYLOAD_TYPE, payload), at)
    signed = EnvelopeSignature(keyid=keyid, sig=b64encode(signature).decode())
    return encode(Envelope(payload_type=PAYLOAD_TYPE, payload=b64encode(payload).decode(), signatures=(signed,)))


def encode_for_signature(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: the type is signed together with the payload."""
    return b"DSSEv1 %d %b %d %b" % (len(payload_type.encode()), payload_type.encode(), len(payload), payload)


class Merge(Struct, frozen=True, kw_only=True):
    """What the statement about one merge is made of."""

    key: QueueKey
    record: RecordedMerge
    commit: Commit
    url: str | None
    submitted_by: str | None
    merged_at: Instant


def build_statement(merge: Merge) -> Statement:
    record, repository = merge.record, str(merge.key.repo)
    submission, run = record.submission, record.run
    is_by_host = run is not None and run.landing_method is LandingMethod.PROVIDER_MERGE
    return Statement(
        subject=(Subject(name=repository, digest={"gitCommit": merge.commit.sha}),),
        predicate=SourceProvenance(
            repository=repository,
            branch=branch_ref(merge.key.branch),
            tree=merge.commit.tree,
            parents=merge.commit.parents,
            pull_request=_describe_pull_request(submission.pull_request, record.tested_head, merge.url),
            submitted_by=merge.submitted_by,
            submitted_at=_to_time(submission.submitted_at),
            forced=submission.forced,
            rules=tuple(map(_describe_rule, submission.pull_request.requirements)),
            merge_method=None if run is None else run.merge_method,
            landing=LandingForm.PROVIDER_MERGE if is_by_host else record.form,
            reason=submission.reason,
            merged_at=_to_time(merge.merged_at),
            test_run=None if run is None else _describe_run(run, record),
        ),
    )


def _describe_pull_request(pull_request: PullRequest, tested_head: Sha | None, url: str | None) -> MergedPullRequest:
    return MergedPullRequest(
        number=pull_request.number,
        url=url,
        title=pull_request.title[:MAX_TEXT_CHARS],
        author=pull_request.author[:MAX_TEXT_CHARS],
        head=tested_head or pull_request.head,
        head_branch=pull_request.head_branch,
    )


def _describe_rule(rule: Requirement) -> RuleState:
    return RuleState(code=rule.reason, needed=rule.needed, given=rule.given, given_by=rule.given_by, met=rule.is_met)


def _describe_run(run: Run, record: RecordedMerge) -> TestRun:
    required = frozenset(run.required_statuses)
    names = sorted({*run.checks, *required}, key=lambda name: (name not in required, name))
    checks = (
        CheckResult(name=name[:MAX_TEXT_CHARS], state=run.checks.get(name, "missing"), required=name in required)
        for name in names
    )
    listed = _limit_checks(checks)
    tested = record.tested_step
    return TestRun(
        id=run.id,
        result=run.status,
        base=run.base,
        stack=tuple(StackedPullRequest(number=member.number, head=member.head) for member in run.stack),
        tested_commit=None if tested is None else tested.commit,
        tested_tree=None if tested is None else tested.tree,
        checked_commit=run.checked_commit if run.chain else None,
        checks=listed,
        checks_left_out=len(names) - len(listed),
        started_at=None if run.started_at is None else _to_time(run.started_at),
        decided_at=None if run.decided_at is None else _to_time(run.decided_at),
    )


def _limit_checks(checks: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """The first ones, so that the note stays smaller than readers accept: a character of a name can need six bytes."""
    listed, size = list[CheckResult](), 0
    for check in checks:
        size += len(encode(check))
        if len(listed) == MAX_CHECKS or size > MAX_CHECKS_BYTES:
            break
        listed.append(check)
    return tuple(listed)


def _to_time(instant: Instant) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)


CONSUMER_OPTIONS = ConsumerOptions(max_retry_delay_ms=10 * MINUTE, is_woken_by=has_landing_changed)
ATTESTED_REASONS = frozenset({Reason.MERGED_BY_QUEUE, Reason.MERGED_DIRECTLY})
"""Not a merge whose result differs from the tested one: what was tested says nothing about it."""
MISSING_AFTER_MS = 10 * MINUTE
"""A commit that the Git host does not have after this time never comes: someone removed it from the branch."""
TOO_LARGE_AFTER_MS = 10 * MINUTE
"""Someone pushed notes that git cannot read within its limits. Trying for a day would keep it busy."""
MAX_TIMELINE_ENTRIES = 1000
MAX_PUSH_ATTEMPTS = 10
"""Other replicas, other queues of the repository and people can write notes at the same time."""


class ProvenanceWriter:
    """Writes the notes from the journal, so that a crash loses none. A repetition gives the same bytes, and then pushes
    nothing. Without a signing key for the Git host it writes none."""

    name = "provenance"

    def __init__(self, store: Store, clock: Clock, repositories: Repositories) -> None:
        self._store = store
        self._clock = clock
        self._repositories = repositories

    async def consume(self, key: QueueKey, queue: QueueId, entries: Sequence[StoredEntry]) -> None:
        """A Git host that refuses the notes does not stop the queue: the writer retries for a day, then gives up."""
        records = (persistence.decode_record(entry.body) for entry in entries)
        merged = [
            record for record in records if isinstance(record, PullRequestChanged) and record.reason in ATTESTED_REASONS
        ]
        if not merged:
            return
        try:
            signer = self._repositories.signer_of(key.repo.host)
            missing = [] if signer is None else await self._write(key, queue, merged, signer)
        except LimitExceededError as error:
            self._retry_or_give_up(key, merged, TOO_LARGE_AFTER_MS, error)
        except (GitError, HostError, RequestRefused) as error:
            self._retry_or_give_up(key, merged, GIVE_UP_AFTER_MS, error)
        else:
            if missing:
                error = GitError(f"The Git host does not have the merged commit on {key.branch}.")
                self._retry_or_give_up(key, missing, MISSING_AFTER_MS, error)

    def _retry_or_give_up(
        self, key: QueueKey, merged: Sequence[PullRequestChanged], after_ms: int, error: Exception
    ) -> None:
        numbers = [record.number for record in merged]
        if not all(self._clock.now() >= later(record.at, after_ms) for record in merged):
            raise PartiallyDelivered(None, f"The provenance of {numbers} is not written: {error}") from error
        log.error("provenance_given_up", repo=str(key.repo), numbers=numbers, error=str(error))

    async def _write(
        self, key: QueueKey, queue: QueueId, merged: Sequence[PullRequestChanged], signer: Signer
    ) -> list[PullRequestChanged]:
        """A commit that is gone does not keep back the notes of the others: returns the merges without a commit."""
        mirror = await self._repositories.open_mirror(key.repo)
        notes, missing = dict[Sha, bytes](), list[PullRequestChanged]()
        for record in merged:
            try:
                merge = await self._read_merge(mirror, key, queue, record)
            except MissingObject:
                missing.append(record)
                continue
            if merge is not None:
                notes[merge.commit.sha] = sign_statement(build_statement(merge), signer)
        if notes:
            await _push_notes(mirror, notes)
        return missing

    async def _read_merge(
        self, mirror: Mirror, key: QueueKey, queue: QueueId, record: PullRequestChanged
    ) -> Merge | None:
        """None if the records of the submission were deleted."""
        submission = await persistence.read_submission(self._store, queue, record.submission_id)
        if submission is None or submission.merged_sha is None:
            return None
        run_id = submission.verified_by
        run = None if run_id is None else await persistence.read_run(self._store, queue, run_id)
        return Merge(
            key=key,
            record=RecordedMerge(submission=submission, run=run),
            commit=await _read_commit(mirror, submission.merged_sha, key.branch),
            url=self._repositories.get_host(key.repo.host).pull_request_url(key.repo, submission.number),
            submitted_by=await self._read_submitter(queue, submission.id),
            merged_at=record.at,
        )

    async def _read_submitter(self, queue: QueueId, submission_id: SubmissionId) -> str | None:
        """From the first entry of the submission; None if it was deleted or there are too many since."""
        stored = await self._store.timeline(queue, submission_id, MAX_TIMELINE_ENTRIES)
        first = persistence.decode_record(stored[-1].body) if stored else None
        if not isinstance(first, PullRequestChanged) or first.source is not None:
            return None
        return decode_actor_name(first.actor)[:MAX_TEXT_CHARS]


async def _read_commit(mirror: Mirror, commit: Sha, branch: str) -> Commit:
    """Fetches the target branch if another replica, or the Git host, made the commit."""
    try:
        return await mirror.read_commit(commit)
    except MissingObject:
        await mirror.fetch([branch_ref(branch)])
        return await mirror.read_commit(commit)


async def _push_notes(mirror: Mirror, notes: dict[Sha, bytes]) -> None:
    """By compare-and-swap: notes that others wrote in the meantime stay."""
    for _ in range(MAX_PUSH_ATTEMPTS):
        tip = (await mirror.fetch([NOTES_REF])).get(NOTES_REF)
        new = await mirror.add_notes(tip, notes)
        if new == tip:
            return
        outcome = await mirror.push(RefUpdate(NOTES_REF, tip, new))
        if isinstance(outcome, Pushed):
            return
        if isinstance(outcome, PushRefused):
            raise GitError(f"The Git host refuses {NOTES_REF}. Allow Mergeyard to push this ref. {outcome.detail}")
    raise GitError(f"{NOTES_REF} changes with every push of ours. Check who else writes it.")


class Provenance:
    """Reads the published notes."""

    def __init__(
        self, registry: QueueRegistry, repositories: Repositories, submission_queries: SubmissionQueries
    ) -> None:
        self._registry = registry
        self._repositories = repositories
        self._submission_queries = submission_queries
        self._tips = ShortCache[Sha](registry.clock)
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        """By Git host."""

    async def find_commit(self, key: QueueKey, number: PullRequestNumber) -> Sha:
        submission = (await self._submission_queries.view_by_number(key, number)).submission
        if submission.merged_sha is None:
            detail = f"The queue has not merged pull request {number}: only merged pull requests have provenance."
            raise RequestRefused(Code.COMMIT_NOT_FOUND, detail)
        return submission.merged_sha

    async def read(self, key: QueueKey, commit: Sha) -> Envelope:
        await self._registry.get(key)
        mirror = await self._repositories.open_mirror(key.repo)
        tip = await self._read_tip(key, mirror)
        for path in (commit, f"{commit[:2]}/{commit[2:]}", f"{commit[:2]}/{commit[2:4]}/{commit[4:]}"):
            note = await mirror.read_file(tip, path, max_bytes=MAX_NOTE_BYTES) if tip else None
            if isinstance(note, bytes):
                return _decode_note(note, commit)
        advice = "Check the commit, and that the Git host has a signing key in the settings"
        detail = (
            f"{key.repo} has no provenance for {commit}. {advice}; a merge of the last minutes may not have it yet."
        )
        raise RequestRefused(Code.COMMIT_NOT_FOUND, detail)

    async def _read_tip(self, key: QueueKey, mirror: Mirror) -> Sha:
        """Empty: there are no notes. Users who can only read can ask for this, so the notes are fetched once in some
        seconds."""
        async with self._locks[key.repo.host]:
            tip = self._tips.get(key)
            if tip is None:
                tip = (await mirror.fetch([NOTES_REF])).get(NOTES_REF, Sha(""))
                self._tips.put(key, tip)
            return tip


def _decode_note(note: bytes, commit: Sha) -> Envelope:
    try:
        return decode_envelope(note)
    except MsgspecError:
        detail = (
            f"The git note of {commit} is not provenance. Another program wrote it: check who can push {NOTES_REF}."
        )
        raise RequestRefused(Code.COMMIT_NOT_FOUND, detail) from None
