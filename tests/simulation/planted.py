"""Wrong services, each with one small bug that an engineer could make. The promises must detect every one of them."""

# pyright: reportPrivateUsage=false
# A bug can be in any function, also in a private one.

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, MergeMethod, Speculation
from mergeyard.domain.events import ChecksObserved, Event, LandingMissed, LandingPullRequestsRead, LandingSucceeded
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha, SubmissionId
from mergeyard.domain.pull_requests import PullRequest
from mergeyard.domain.queue import Landing, Queue
from mergeyard.domain.runs import HeadMove, Member, Step
from mergeyard.domain.states import QueueState
from mergeyard.domain.tasks import Land, ReadPullRequests
from mergeyard.engine import merging, observations
from mergeyard.ports.git import Commit, Conflict, GitError, Pushed, PushOutcome, RefUpdate, Remote
from mergeyard.ports.store import Store
from mergeyard.service import git_names, landed_heads, persistence, poller
from mergeyard.service.idempotency import Idempotency
from mergeyard.service.leases import Leases
from mergeyard.service.pull_request_reader import PullRequestReader
from mergeyard.service.queue_actor import PendingCommand, QueueActor
from mergeyard.service.repositories import RepositoryContext
from mergeyard.service.statuses import RunStatuses, Statuses, to_check_states
from mergeyard.service.tasks import build_run, commit_builder, head_branches, land, observe, provider_merge
from mergeyard.service.tasks.commit_builder import MergeCommitBuilder
from tests.simulation.faults import Family
from tests.simulation.git import SimMirror
from tests.simulation.script import (
    Approve,
    Close,
    FaultPeriod,
    Heads,
    JumpClock,
    Kill,
    Nature,
    PushForged,
    PushRevert,
    PushToTarget,
    ReportOnHead,
    RewindTarget,
    RewriteHead,
    Script,
    SetState,
    Submit,
    Upload,
    Withdraw,
)


class Planted(Struct, frozen=True):
    bug: str
    owner: object
    """The module or class that holds the right function."""
    right: str
    wrong: Callable[..., Any]
    story: Script | None = None
    """The script in which it shows, with one of the first seeds; None: one of the first worlds."""
    also: "Planted | None" = None
    """Another function that would hide the bug."""


@contextmanager
def planted(bug: Planted) -> Generator[None]:
    """Replace the right function in its module or class, and in every service module whose globals refer to it."""
    with nullcontext() if bug.also is None else planted(bug.also), _replaced(bug):
        yield


@contextmanager
def _replaced(bug: Planted) -> Generator[None]:
    right = getattr(bug.owner, bug.right)
    modules = [module for name, module in sys.modules.items() if name.startswith("mergeyard.service.")]
    known = [(module, name) for module in modules for name, value in list(vars(module).items()) if value is right]
    for owner, name in (*known, (bug.owner, bug.right)):
        setattr(owner, name, bug.wrong)
    try:
        yield
    finally:
        for owner, name in (*known, (bug.owner, bug.right)):
            setattr(owner, name, right)


# Landing.


async def _land_on_any_tip(
    context: RepositoryContext, task: Land, branch: str, *_args: Any, **_named: Any
) -> tuple[Event, ...] | None:
    tip, _ = await land._fetch_refs(context, branch)
    if not await land._find_landed(context, tip, task):
        await context.mirror.push(RefUpdate(context.target_ref, tip, task.steps[-1].commit))
    return await land._finish_landing(context, task)


async def _treat_lost_reply_as_failure(
    context: RepositoryContext, task: Land, *args: Any, **named: Any
) -> tuple[Event, ...]:
    try:
        return await _land(context, task, *args, **named)
    except GitError:
        return (LandingMissed(landing=task.landing),)


async def _treat_lost_reply_as_success(
    context: RepositoryContext, task: Land, *args: Any, **named: Any
) -> tuple[Event, ...]:
    try:
        return await _land(context, task, *args, **named)
    except GitError:
        return (LandingSucceeded(landing=task.landing, steps=task.steps),)


async def _push_first_ref(self: SimMirror, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:
    """Of a landing, only the target branch."""
    return await _push(self, updates[0], to=to)


async def _push_heads_without_lease(self: SimMirror, *updates: RefUpdate, to: Remote | None = None) -> PushOutcome:
    """Whatever the head branches have."""
    refs = self._origin.refs
    forced = [replace(each, old=refs.get(each.ref)) if "/feature" in each.ref else each for each in updates]
    return await _push(self, *forced, to=to)


def _move_heads_to_tip(queue: Queue, landing: Landing) -> Iterator[tuple[SubmissionId, HeadMove]]:
    """The head branches of all pull requests of a landing."""
    for submission_id, move in _head_moves(queue, landing):
        yield submission_id, replace(move, commit=landing.steps[-1].commit)


async def _leave_head(context: RepositoryContext, move: HeadMove) -> PushOutcome:  # noqa: ARG001
    """Where it was moved to."""
    return Pushed()


def _is_never_moved_by_us(*_: object) -> bool:
    return False


async def _do_not_undo(*_: object) -> bool:
    return False


async def _find_nothing(self: provider_merge.GitMerger, tip: Sha | None) -> list[Step]:  # noqa: ARG001
    return []


async def _do_not_wait(*_: object) -> None:
    """Does not wait until the forge shows the merge."""


async def _assume_tested_tree(self: provider_merge.ForgeMerger, _: Member, commit: Sha, onto: Sha) -> Step:
    return Step(commit, onto, self.task.steps[0].tree)


async def _repeat_what_is_known(
    context: RepositoryContext, reader: PullRequestReader, task: ReadPullRequests
) -> tuple[Event, ...]:
    """Without reading the pull requests of a landing once more."""
    del reader
    queue = context.queue_actor.queue
    known = tuple(submission.pull_request for number in task.numbers if (submission := queue.submission_of(number)))
    revision = queue.counters.revision
    return (LandingPullRequestsRead(landing=task.landing, pull_requests=known, observed_at_revision=revision),)


async def _believe_last_read(*_: object, **__: object) -> bool:
    return False


async def _keep_approval(
    self: PullRequestReader, context: RepositoryContext, number: PullRequestNumber
) -> PullRequest | None:
    """A pull request that was approved when it was submitted counts as approved."""
    pull_request = await _read_with_merge_check(self, context, number)
    submission = context.queue_actor.queue.submission_of(number)
    if pull_request is None or submission is None or submission.pull_request.unmet_requirements:
        return pull_request
    return replace(pull_request, requirements=submission.pull_request.requirements)


# Building.


async def _ignore_removed_commits(context: RepositoryContext, head: Sha, forbidden: frozenset[Sha]) -> bool:  # noqa: ARG001
    return False


async def _use_own_steps(context: RepositoryContext, task: Any, ref: str, own: tuple[Step, ...]) -> tuple[Step, ...]:  # noqa: ARG001
    """The steps built here, whatever the branch contains."""
    return own


async def is_always_so(*_: object) -> bool:
    return True


async def _believe_claims(_: RepositoryContext, __: Store, commits: Sequence[Commit]) -> frozenset[Sha]:
    """The head that a message names counts, also if a stranger wrote the message."""
    return frozenset(head for commit in commits if (head := git_names.parse_head_trailer(commit.message)))


async def squash_without_a_file(self: MergeCommitBuilder, member: Member, onto: Sha) -> Step | Conflict:
    step = await _squash(self, member, onto)
    if isinstance(step, Conflict):
        return step
    changed = sorted(await self.mirror.changed_paths(onto, step.commit))
    tree = await self.mirror.replace_paths(step.commit, onto, changed[:1])
    return step if isinstance(tree, Conflict) else Step(await self._commit_squash(member, onto, tree), onto, tree)


async def rebase_without_comparing(self: MergeCommitBuilder, member: Member, onto: Sha) -> Step | Conflict:
    landed = await self._find_landed_heads(member, onto)
    limit = commit_builder.MAX_REBASE_COMMITS
    commits = await commit_builder.read_own_commits(self.mirror, member.head, self.base, landed, limit=limit)
    return await self._rebase_commits(member, onto, [commit for commit in commits if len(commit.parents) == 1])


# Decisions.


async def _answer_before_saving(self: QueueActor, commands: list[PendingCommand]) -> None:
    for command in commands:
        render = command.render
        command.render = lambda decision, command=command, render=render: _answer(command, render(decision))
    await _try_to_save(self, commands)


def _answer(command: PendingCommand, body: bytes) -> bytes:
    if not command.outcome.done():
        command.outcome.set_result(body)
    return body


async def _save_over_other_replica(self: QueueActor, commands: list[PendingCommand]) -> None:
    """After a version conflict, it takes the other version number without loading the changes."""
    try:
        await _try_to_save(self, commands)
    except persistence.StoreUnavailable:
        raise
    except Exception:
        self.version += 1
        await _try_to_save(self, commands)


async def _resume_without_tasks(self: QueueActor) -> None:
    """After a restart pending tasks are not started."""
    await self.submit()


async def _find_no_response(self: Idempotency, repeat: Any) -> bytes | None:  # noqa: ARG001
    return None


# Leases.


def _always_has_lease(self: Leases, repo: Repo) -> bool:  # noqa: ARG001
    return True


# Observing.


async def _report_statuses_of_heads(self: Statuses, run_statuses: RunStatuses) -> None:
    """By the run, not by the commit: statuses of any commit of its pull requests count."""
    async with run_statuses.report_lock:
        run = run_statuses.queue_actor.queue.runs.get(run_statuses.run_id)
        heads = [member.head for member in run.tested_members] if run else []
        now = to_check_states(
            [
                status
                for sha in (run_statuses.commit_key[1], *heads)
                for status in await self._store.statuses(run_statuses.commit_key[0], sha)
            ]
        )
        if now != run_statuses.reported_checks:
            await run_statuses.queue_actor.submit(
                ChecksObserved(run=run_statuses.run_id, checks=now, observed_at_revision=2**62)
            )
            run_statuses.reported_checks = now


def _derive_no_events(*_: object) -> tuple[()]:
    return ()


WAIT_METHOD = "_raise_if_forge_is_stale"
_head_moves = merging._head_moves
_land = land.land
_push = SimMirror.push
_read_with_merge_check = PullRequestReader.read_with_merge_check
_squash = MergeCommitBuilder._squash
_try_to_save = QueueActor._try_to_save

STALE_FORGE = Script(
    config=Config(landing=LandingMethod.PROVIDER_MERGE),
    has_forge=True,
    acts=(
        Submit(at=1000, pr=1),
        Kill(at=1500, for_ms=1000, during="landing", lag=450),
        FaultPeriod(at=1500, of=Family.STALE_READS, for_ms=20000, during="landing", lag=450),
    ),
)
LOST_REPLIES = Script(
    config=Config(
        speculation=Speculation.BEST_FIRST, testing_timeout_minutes=1, direct_merge_mode=DirectMergeMode.ALWAYS
    ),
    statuses=("unit", "lint"),
    nature=Nature(bad_pairs=((2, 5), (3, 5))),
    acts=(
        FaultPeriod(at=11354, during="landing", lag=300, of=Family.LOST_REPLIES, for_ms=30000, percent=20),
        Submit(at=14506, pr=4, priority=10),
        Submit(at=15727, pr=3),
        Submit(at=18311, pr=5, no_batch=True),
        Submit(at=20055, pr=2, priority=200, no_batch=True, forced=True),
        JumpClock(at=33572, during="testing", lag=200, by_ms=-3600000, replica=2, for_ms=60000),
    ),
)
PUSHES = Script(
    config=Config(landing=LandingMethod.PROVIDER_MERGE),
    has_forge=True,
    acts=(Submit(at=1000, pr=1), PushToTarget(at=1500, during="landing", lag=600)),
)
PAUSED_BY_OTHER_REPLICA = Script(
    replicas=2,
    acts=(Submit(at=9176, pr=5, forced=True), SetState(at=9276, state=QueueState.PAUSED)),
)
STACKED_ON_REMOVED_COMMIT = Script(
    nature=Nature(stacked_on=((2, 1),)),
    acts=(Submit(at=1000, pr=1), Upload(at=2000, pr=2), RewindTarget(at=80_000), Submit(at=90_000, pr=2)),
)
PASSED_HEADS_THAT_FAIL_TOGETHER = Script(
    nature=Nature(bad_pairs=((1, 2),)),
    acts=(
        Submit(at=1000, pr=1),
        Submit(at=1500, pr=2),
        ReportOnHead(at=2500, pr=1),
        ReportOnHead(at=2500, pr=2),
    ),
)
CLOSED_BEFORE_READY = Script(
    nature=Nature(sharing=(1, 2)),
    acts=(Upload(at=500, pr=2), Submit(at=1000, pr=1), Submit(at=70_000, pr=2), Close(at=90_000, pr=2)),
)
WITHDRAWN_WHILE_PAUSED = Script(
    has_forge=True,
    requires_approval=True,
    hides_reviews=True,
    acts=(
        Approve(at=1000, pr=1),
        Submit(at=2000, pr=1),
        SetState(at=2500, state=QueueState.PAUSED),
        FaultPeriod(at=11_000, of=Family.LOST_NOTICES, for_ms=5000),
        Withdraw(at=12_000, pr=1),
        SetState(at=50_000, state=QueueState.RUNNING),
    ),
)
WITHDRAWN_WHILE_DOWN = Script(
    has_forge=True,
    requires_approval=True,
    hides_reviews=True,
    acts=(
        Approve(at=500, pr=1),
        Submit(at=1000, pr=1),
        Kill(at=1500, during="landing", lag=250, for_ms=30_000),
        Withdraw(at=1500, during="landing", lag=5000, pr=1),
    ),
)
PUSHED_WHILE_LANDING = Script(
    config=Config(merge_method=MergeMethod.SQUASH),
    heads=Heads(),
    acts=(Submit(at=1000, pr=1), RewriteHead(at=1500, during="landing", lag=300, pr=1)),
)
LANDED_TOGETHER = Script(
    config=Config(merge_method=MergeMethod.REBASE, batch=True, batching_max_wait_time_minutes=1),
    heads=Heads(),
    acts=(Submit(at=1000, pr=1), Submit(at=1100, pr=2)),
)
MISSED_AFTER_THE_HEAD_MOVED = Script(
    config=Config(merge_method=MergeMethod.SQUASH),
    has_forge=True,
    heads=Heads(moved_first=True, shown_after_ms=2000),
    acts=(Submit(at=1000, pr=1), PushToTarget(at=1500, during="landing", lag=1500)),
)

LANDS_AGAIN = Script(
    config=Config(merge_method=MergeMethod.SQUASH),
    nature=Nature(landing_again=((2, 1),)),
    acts=(Submit(at=1000, pr=1), PushRevert(at=40_000, pr=1), Submit(at=45_000, pr=2)),
)
CLAIMED_BY_A_STRANGER = Script(
    config=Config(merge_method=MergeMethod.SQUASH),
    nature=Nature(undoing=(1,)),
    acts=(Upload(at=500, pr=1), PushForged(at=3000, pr=1, picks=True), Submit(at=8000, pr=1)),
)
CLAIM_THAT_IS_REMOVED = Script(
    acts=(
        Upload(at=500, pr=1),
        Submit(at=1000, pr=2),
        PushForged(at=3000, pr=1),
        RewindTarget(at=9000),
        Submit(at=60_000, pr=1),
    ),
)
ONE_SQUASH = Script(config=Config(merge_method=MergeMethod.SQUASH), acts=(Submit(at=1000, pr=1),))
REBASED_TWICE = replace(CLAIMED_BY_A_STRANGER, config=Config(merge_method=MergeMethod.REBASE))

BUGS = (
    Planted("fast-forward without compare-and-swap", land, "_attempt", _land_on_any_tip),
    Planted("a lost reply handled as a failure", land, "land", _treat_lost_reply_as_failure),
    Planted("a lost reply handled as a success", land, "land", _treat_lost_reply_as_success),
    Planted("landing without deleting the test branch", SimMirror, "push", _push_first_ref),
    Planted("a head moved without a lease", SimMirror, "push", _push_heads_without_lease, PUSHED_WHILE_LANDING),
    Planted("a head moved to the commit of another", merging, "_head_moves", _move_heads_to_tip, LANDED_TOGETHER),
    Planted("a head not moved back", head_branches, "_push_back", _leave_head, MISSED_AFTER_THE_HEAD_MOVED),
    Planted(
        "our own move taken for a push",
        observations,
        "is_moved_by_us",
        _is_never_moved_by_us,
        MISSED_AFTER_THE_HEAD_MOVED,
        also=Planted("a late move not undone", head_branches, "undo_late_move", _do_not_undo),
    ),
    Planted("an earlier merge is not found", provider_merge.GitMerger, "find_merged_steps", _find_nothing),
    Planted("no wait for a merge", provider_merge.ForgeMerger, WAIT_METHOD, _do_not_wait, STALE_FORGE),
    Planted("no tree check", provider_merge.ForgeMerger, "_read_step", _assume_tested_tree, PUSHES),
    Planted(
        "removed commits come back",
        commit_builder,
        "contains_removed_commit",
        _ignore_removed_commits,
        STACKED_ON_REMOVED_COMMIT,
    ),
    Planted("a reverted change counts as landed", landed_heads, "_is_there", is_always_so, LANDS_AGAIN),
    Planted("a claim of a stranger counts", landed_heads, "_has_landed", is_always_so, CLAIMED_BY_A_STRANGER),
    Planted(
        "a removed claim of a stranger counts",
        commit_builder,
        "_find_heads_of_landings",
        _believe_claims,
        CLAIM_THAT_IS_REMOVED,
    ),
    Planted("a squash without one of its files", MergeCommitBuilder, "_squash", squash_without_a_file, ONE_SQUASH),
    Planted(
        "a rebase that differs from the merge",
        MergeCommitBuilder,
        "_rebase",
        rebase_without_comparing,
        REBASED_TWICE,
    ),
    Planted("a foreign test branch accepted as built", build_run, "_read_existing_steps", _use_own_steps, LOST_REPLIES),
    Planted("response before the commit", QueueActor, "_try_to_save", _answer_before_saving),
    Planted(
        "saved over changes of another replica",
        QueueActor,
        "_decide_and_save",
        _save_over_other_replica,
        PAUSED_BY_OTHER_REPLICA,
    ),
    Planted("no tasks after a restart", QueueActor, "resume", _resume_without_tasks),
    Planted("idempotency keys ignored", Idempotency, "find_response", _find_no_response),
    Planted("every replica works", Leases, "has_lease", _always_has_lease),
    Planted(
        "result by pull request, not by commit",
        Statuses,
        "_report_to_engine",
        _report_statuses_of_heads,
        PASSED_HEADS_THAT_FAIL_TOGETHER,
    ),
    Planted(
        "believes the approval from the submission",
        PullRequestReader,
        "read_with_merge_check",
        _keep_approval,
        WITHDRAWN_WHILE_PAUSED,
    ),
    Planted(
        "does not read before landing",
        observe,
        "read_landing_pull_requests",
        _repeat_what_is_known,
        WITHDRAWN_WHILE_PAUSED,
    ),
    Planted(
        "believes a read from before a crash",
        observe,
        "can_no_longer_merge",
        _believe_last_read,
        WITHDRAWN_WHILE_DOWN,
    ),
    Planted("foreign pushes not noticed", poller, "derive_dirty_events", _derive_no_events, CLOSED_BEFORE_READY),
)
