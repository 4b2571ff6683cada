"""Moves the head branches of pull requests to the commits that merge them, before the target branch, and back.

On plain Git, the push of the target branch moves them as well. Other Git hosts show a pull request as merged only if
they know its new head before, and two repositories cannot change in one push.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import assert_never

import structlog
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import HeadBranchFallback
from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import PullRequest, Submission
from mergeyard.domain.runs import HeadMove
from mergeyard.domain.timestamps import MINUTE, SECOND, Instant, later
from mergeyard.engine import run_validity
from mergeyard.ports import git
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import HostError
from mergeyard.service.comments import texts
from mergeyard.service.git_names import branch_ref
from mergeyard.service.repositories import RepositoryContext

log = structlog.get_logger()

FORK_TIMEOUT_S = 30.0
MAX_BACK_MS = MINUTE
"""Forks that do not answer for this long, all together, keep the moved heads."""
BACK_INTERVAL_MS = 5 * SECOND
MAX_WAIT_MS = MINUTE
"""For a Git host that is slow to notice a moved head branch. It then shows the pull request as open, and
`MergeMarker` closes it with a link."""
WAIT_INTERVAL_MS = SECOND
MAX_MOVED_MS = 2 * MINUTE
"""For so long after a move, the rules that the pull request met before the move count: a Git host can withdraw
approvals because we moved the head branch. Later, for example after an outage, it has to meet them again."""


class FailedMoves(Struct, frozen=True):
    """Why nothing can land now."""

    pushed: tuple[HeadMove, ...] = ()
    """The author pushed to these head branches."""
    refused: tuple[HeadMove, ...] = ()
    """The Git host refuses to move these, and has to merge their pull requests instead."""


def to_update(move: HeadMove) -> git.RefUpdate:
    return git.RefUpdate(branch_ref(move.branch), move.head, move.commit)


def is_moved_first(context: RepositoryContext, move: HeadMove) -> bool:
    return bool(move.fork) or context.host.moves_heads_first


def is_recent(moved_at: Instant, clock: Clock) -> bool:
    return moved_at <= clock.now() <= later(moved_at, MAX_MOVED_MS)


def select_recent(context: RepositoryContext, moves: Sequence[HeadMove], clock: Clock) -> Sequence[HeadMove]:
    """Those that an earlier attempt can have made, if the landing was decided a short time ago."""
    submissions = (context.queue_actor.queue.submission_of(move.number) for move in moves)
    moved_heads = [each.moved_head for each in submissions if each is not None]
    return moves if all(each is not None and is_recent(each.at, clock) for each in moved_heads) else ()


async def move_first(context: RepositoryContext, moves: Sequence[HeadMove], clock: Clock) -> FailedMoves | None:
    """Those of this repository in one push, so that a push of one author moves none of them. After the move, git itself
    rejects a push of an author, unless it is forced."""
    own = [move for move in moves if not move.fork]
    moved, refused = await _move_own_heads(context, own)
    if moved is None:
        return FailedMoves(pushed=tuple(await find_pushed(context, own) or own))
    for move in moves:
        if move.fork:
            outcome = await _push_to_fork(context, move, to_update(move))
            if isinstance(outcome, git.Stale):
                return FailedMoves(pushed=(move,))
            (moved if isinstance(outcome, git.Pushed) else refused).append(move)
    if refused and context.queue_actor.queue.config.head_branch_fallback is HeadBranchFallback.PROVIDER_MERGE:
        return FailedMoves(refused=tuple(refused))
    deadline = later(clock.now(), MAX_WAIT_MS)
    for move in moved:
        while not await _is_head_shown(context, move) and clock.now() < deadline:
            await clock.sleep(WAIT_INTERVAL_MS)
    return None


async def _move_own_heads(
    context: RepositoryContext, moves: Sequence[HeadMove]
) -> tuple[list[HeadMove] | None, list[HeadMove]]:
    """The moved and the refused ones; None instead of the moved ones if an author pushed, so that none moved."""
    if not moves:
        return [], []
    outcome = await context.mirror.push(*map(to_update, moves))
    match outcome:
        case git.Pushed():
            return list(moves), []
        case git.Stale():
            return None, []
        case git.PushRefused():
            refused = [move for move in moves if branch_ref(move.branch) in outcome.refs] or list(moves)
            log.warning("head_branches_not_moved", repo=str(context.repo), branches=[move.branch for move in refused])
            moved, others = await _move_own_heads(context, [move for move in moves if move not in refused])
            return moved, [*refused, *others]
        case _:
            assert_never(outcome)


async def find_pushed(context: RepositoryContext, moves: Sequence[HeadMove]) -> Sequence[HeadMove]:
    """The head branches of this repository that the author pushed to or deleted: each of the others is at the tested
    head or at our commit."""
    refs = {branch_ref(move.branch): move for move in moves if not move.fork}
    tips = await context.mirror.remote_refs(*refs) if refs else dict[str, Sha]()
    return [move for ref, move in refs.items() if tips.get(ref) not in (move.head, move.commit)]


async def move_back(context: RepositoryContext, moves: Sequence[HeadMove], clock: Clock) -> None:
    """Undoes `move_first`, also that of an earlier attempt, or of another replica. A branch that the author pushed to
    stays."""
    moves = [move for move in moves if is_moved_first(context, move)]
    refs = [branch_ref(move.branch) for move in moves if not move.fork]
    tips = await context.mirror.remote_refs(*refs) if refs else dict[str, Sha]()
    deadline = later(clock.now(), MAX_BACK_MS)
    for move in moves:
        if move.fork or tips.get(branch_ref(move.branch)) == move.commit:
            await _move_back_or_explain(context, move, clock, deadline)


async def _move_back_or_explain(context: RepositoryContext, move: HeadMove, clock: Clock, deadline: Instant) -> None:
    """A branch that cannot be moved back must not stop the queue: a comment and the log name the head that it had."""
    outcome = await _push_back(context, move)
    while isinstance(outcome, ForkUnavailable) and clock.now() < deadline:
        await clock.sleep(BACK_INTERVAL_MS)
        outcome = await _push_back(context, move)
    if not isinstance(outcome, git.PushRefused):
        return
    log.warning(
        "head_branch_not_moved_back",
        repo=str(context.repo),
        number=move.number,
        head=move.head,
        error=outcome.detail,
    )
    if context.host.forge is not None:
        text = texts.build_not_moved_back_comment(move.branch, move.head)
        with suppress(HostError):  # also if comments are limited now: the queue does not wait for it
            await context.host.forge.put_comment(context.repo, move.number, text, None)


async def _push_back(context: RepositoryContext, move: HeadMove) -> git.PushOutcome:
    update = git.RefUpdate(branch_ref(move.branch), move.commit, move.head)
    try:
        if not await context.has_commit(move.head):
            await context.mirror.fetch_commit(move.head)
        return await (_push_to_fork(context, move, update) if move.fork else context.mirror.push(update))
    except git.MissingObject as error:
        return git.PushRefused(str(error))


async def undo_late_move(context: RepositoryContext, submission: Submission, pull_request: PullRequest) -> bool:
    """A push of ours can reach the Git host after its landing gave up, if the process that started it was killed. True
    if the head branch is now where it was before."""
    before, head = submission.pull_request, pull_request.head
    is_ours = any(each.commit == head for each in submission.moved_heads)
    if not pull_request.is_open or not is_ours or before.head == head:
        return False
    move = HeadMove(before.number, before.head_branch, before.head, head, before.head_repo)
    is_landing = run_validity.is_locked_by_landing(context.queue_actor.queue, submission.id)
    if is_landing or not is_moved_first(context, move):
        return False
    try:
        return isinstance(await _push_back(context, move), git.Pushed)
    except git.GitError as error:
        log.warning("head_branch_not_moved_back", repo=str(context.repo), number=move.number, error=str(error))
        return False


class ForkUnavailable(git.PushRefused, frozen=True):
    """The fork does not answer. It must not hold the queue for long."""


async def _push_to_fork(context: RepositoryContext, move: HeadMove, update: git.RefUpdate) -> git.PushOutcome:
    owner, _, name = move.fork.rpartition("/")
    try:
        async with asyncio.timeout(FORK_TIMEOUT_S):
            remote = await context.host.remote(replace(context.repo, owner=owner, name=name))
            return await context.mirror.push(update, to=remote)
    except (git.GitError, HostError, TimeoutError) as error:
        detail = str(error) or f"The fork {move.fork} does not answer."
        log.warning("fork_not_pushed", repo=str(context.repo), fork=move.fork, number=move.number, error=detail)
        return ForkUnavailable(detail)


async def _is_head_shown(context: RepositoryContext, move: HeadMove) -> bool:
    shown = await context.host.read_pull_request(context.repo, move.number, with_requirements=False)
    return shown is not None and shown.head == move.commit
