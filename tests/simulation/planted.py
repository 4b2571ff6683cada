"""Wrong services, each with one small bug that somebody could make. The promises must notice every one of them."""

# pyright: reportPrivateUsage=false
# A bug may sit in any function, also in one that is nobody else's business.

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from mergeyard.domain.config import Config, DirectMergeMode, LandingMethod, Speculation
from mergeyard.domain.events import ChecksSeen, Event, LandingMissed, LandingSucceeded
from mergeyard.domain.ids import Sha
from mergeyard.domain.repositories import Repo
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.states import QueueState
from mergeyard.domain.tasks import Land
from mergeyard.ports.git import GitTrouble, RefUpdate
from mergeyard.service import readings, restoring
from mergeyard.service.asked import Asked
from mergeyard.service.duties import Duties
from mergeyard.service.performing import building, landing, merging_by_forge, merging_by_git, removed
from mergeyard.service.repeating import Repeating
from mergeyard.service.site import Site
from mergeyard.service.statuses import Board, Statuses, checks
from mergeyard.service.turn import Keeper
from tests.simulation.script import (
    Close,
    JumpClock,
    Kill,
    Nature,
    PushToTarget,
    ReportOnHead,
    RewindTarget,
    Script,
    SetState,
    Submit,
    Trouble,
    Upload,
)
from tests.simulation.weather import Family


class Planted(Struct, frozen=True):
    bug: str
    place: object
    """The module or class that holds the right function."""
    right: str
    wrong: Callable[..., Any]
    story: Script | None = None
    """Where it shows; None: in one of the first worlds."""


@contextmanager
def planted(bug: Planted) -> Generator[None]:
    """Put the wrong function wherever the right one is known."""
    right = getattr(bug.place, bug.right)
    rooms = [module for name, module in sys.modules.items() if name.startswith("mergeyard.service.")]
    known = [(room, name) for room in rooms for name, value in list(vars(room).items()) if value is right]
    for place, name in (*known, (bug.place, bug.right)):
        setattr(place, name, bug.wrong)
    try:
        yield
    finally:
        for place, name in (*known, (bug.place, bug.right)):
            setattr(place, name, right)


# Landing.


async def _land_upon_whatever_is_there(site: Site, task: Land, branch: str | None) -> tuple[Event, ...] | None:
    tip, _ = await landing._read(site, branch)
    if not await landing._landed(site, tip, task):
        await site.mirror.push(RefUpdate(site.target_ref, tip, task.steps[-1].commit))
    return await landing._succeed(site, task)


async def _take_a_lost_reply_for_a_failure(site: Site, task: Land) -> tuple[Event, ...]:
    try:
        return await _land(site, task)
    except GitTrouble:
        return (LandingMissed(landing=task.landing),)


async def _believe_that_it_landed(site: Site, task: Land) -> tuple[Event, ...]:
    try:
        return await _land(site, task)
    except GitTrouble:
        return (LandingSucceeded(landing=task.landing, steps=task.steps),)


def _leave_the_permission_lying_about(site: Site, task: Land, _: str | None, new: Sha) -> list[RefUpdate]:
    return [RefUpdate(site.target_ref, task.expected, new)]


async def _find_nothing(self: merging_by_git.MergingByGit, tip: Sha | None) -> list[Step]:  # noqa: ARG001
    return []


async def _wait_for_nothing(*_: object) -> None:
    """What the forge does not show yet is not there."""


async def _take_the_tree_for_the_tested_one(
    self: merging_by_forge.MergingByForge, _: Member, commit: Sha, onto: Sha
) -> Step:
    return Step(commit, onto, self._task.steps[0].tree)


# Building.


async def _forgive_removals(site: Site, head: Sha, forbidden: frozenset[Sha]) -> bool:  # noqa: ARG001
    return False


async def _believe_the_branch(site: Site, task: Any, ref: str, own: tuple[Step, ...]) -> tuple[Step, ...]:  # noqa: ARG001
    """What was made here, whatever is there."""
    return own


# Turns.


async def _answer_before_saving(self: Keeper, asked: list[Asked]) -> None:
    for one in asked:
        one_render = one.render
        one.render = lambda decision, one=one, render=one_render: _answered(one, render(decision))
    await _try_to_save(self, asked)


def _answered(one: Asked, body: bytes) -> bytes:
    if not one.outcome.done():
        one.outcome.set_result(body)
    return body


async def _save_over_others(self: Keeper, asked: list[Asked]) -> None:
    """Whoever was outrun takes the other's version number, and not what is in it."""
    try:
        await _try_to_save(self, asked)
    except restoring.StoreTrouble:
        raise
    except Exception:
        self.version += 1
        await _try_to_save(self, asked)


async def _sleep_on(self: Keeper) -> None:
    """After a restart nobody is told of what is outstanding."""
    await self.tell()


async def _forget_what_was_answered(self: Repeating, repeat: Any) -> bytes | None:  # noqa: ARG001
    return None


# On duty.


def _work_for_everybody(self: Duties, repo: Repo) -> bool:  # noqa: ARG001
    return True


# Seeing.


async def _show_what_the_branch_had(self: Statuses, board: Board) -> None:
    """By the run, not by the commit: what was said of any commit of its pull requests counts."""
    async with board.showing:
        run = board.keeper.queue.runs.get(board.run)
        heads = [member.head for member in run.tested] if run else []
        now = checks(
            [status for sha in (board.place[1], *heads) for status in await self._store.statuses(board.place[0], sha)]
        )
        if now != board.shown:
            await board.keeper.tell(ChecksSeen(run=board.run, checks=now, as_of=2**62))
            board.shown = now


def _hear_nothing(*_: object) -> tuple[()]:
    return ()


WAIT = "_wait_for_what_the_target_shows"
_land = landing.land
_try_to_save = Keeper._try_to_save

LATE_FORGE = Script(
    seed=9,
    config=Config(landing=LandingMethod.PROVIDER_MERGE),
    has_forge=True,
    acts=(
        Submit(at=1000, pr=1),
        Kill(at=1500, for_ms=1000, during="landing", lag=450),
        Trouble(at=1500, of=Family.STALE_READS, for_ms=20000, during="landing", lag=450),
    ),
)
LOST_REPLIES = Script(
    seed=8,
    config=Config(
        speculation=Speculation.BEST_FIRST, testing_timeout_minutes=1, direct_merge_mode=DirectMergeMode.ALWAYS
    ),
    statuses=("unit", "lint"),
    nature=Nature(bad_pairs=((2, 5), (3, 5))),
    acts=(
        Trouble(at=11354, during="landing", lag=300, of=Family.LOST_REPLIES, for_ms=30000, percent=20),
        Submit(at=14506, pr=4, priority=10),
        Submit(at=15727, pr=3),
        Submit(at=18311, pr=5, no_batch=True),
        Submit(at=20055, pr=2, priority=200, no_batch=True, forced=True),
        JumpClock(at=33572, during="testing", lag=200, by_ms=-3600000, replica=2, for_ms=60000),
    ),
)
PUSHES = Script(
    seed=1,
    config=Config(landing=LandingMethod.PROVIDER_MERGE),
    has_forge=True,
    acts=(Submit(at=1000, pr=1), PushToTarget(at=1500, during="landing", lag=600)),
)
PAUSED_THROUGH_ANOTHER = Script(
    seed=11,
    replicas=2,
    acts=(Submit(at=9176, pr=5, forced=True), SetState(at=9500, state=QueueState.PAUSED)),
)
UPON_WHAT_WAS_TAKEN_OFF = Script(
    nature=Nature(upon=((2, 1),)),
    acts=(Submit(at=1000, pr=1), Upload(at=2000, pr=2), RewindTarget(at=80_000), Submit(at=90_000, pr=2)),
)
GREEN_HEAD_OF_A_BAD_STACK = Script(
    nature=Nature(bad_pairs=((1, 2),)),
    acts=(
        Submit(at=1000, pr=1),
        Submit(at=1500, pr=2),
        ReportOnHead(at=2500, pr=1),
        ReportOnHead(at=2500, pr=2),
    ),
)
CLOSED_BEFORE_IT_WAS_READY = Script(
    nature=Nature(sharing=(1, 2)),
    acts=(Upload(at=500, pr=2), Submit(at=1000, pr=1), Submit(at=70_000, pr=2), Close(at=90_000, pr=2)),
)

BUGS = (
    Planted("fast-forward without compare-and-swap", landing, "_attempt", _land_upon_whatever_is_there),
    Planted("a lost reply taken for a failure", landing, "land", _take_a_lost_reply_for_a_failure),
    Planted("a lost reply taken for a success", landing, "land", _believe_that_it_landed),
    Planted("landing without the permission", landing, "_updates", _leave_the_permission_lying_about),
    Planted("what is merged already is not found", merging_by_git.MergingByGit, "merged_already", _find_nothing),
    Planted("a merge is not waited for", merging_by_forge.MergingByForge, WAIT, _wait_for_nothing, LATE_FORGE),
    Planted("no tree check", merging_by_forge.MergingByForge, "_step", _take_the_tree_for_the_tested_one, PUSHES),
    Planted("what was removed comes back", removed, "holds_removed_commit", _forgive_removals, UPON_WHAT_WAS_TAKEN_OFF),
    Planted(
        "another's branch taken for what was made", building, "_steps_that_are_there", _believe_the_branch, LOST_REPLIES
    ),
    Planted("answered before it is saved", Keeper, "_try_to_save", _answer_before_saving),
    Planted("saved over what others saved", Keeper, "_decide_and_save", _save_over_others, PAUSED_THROUGH_ANOTHER),
    Planted("asleep after a restart", Keeper, "wake", _sleep_on),
    Planted("keys of requests ignored", Repeating, "answered", _forget_what_was_answered),
    Planted("everybody works", Duties, "covers", _work_for_everybody),
    Planted(
        "verdict by the pull request, not the commit",
        Statuses,
        "_show",
        _show_what_the_branch_had,
        GREEN_HEAD_OF_A_BAD_STACK,
    ),
    Planted("deaf to foreign pushes", readings, "news", _hear_nothing, CLOSED_BEFORE_IT_WAS_READY),
)
