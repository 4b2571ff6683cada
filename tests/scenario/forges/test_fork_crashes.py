"""Kills the service at every boundary of a landing that moves the head branch of a fork.

One push cannot change two remotes, so the head in the fork moves first, then the target branch. A kill can leave one of
them moved and the other not, or both moved and nothing stored about it. The next process has only the store and what
the Git host shows.

The boundaries are those between the effects of the service: requests that change something at the Git host, and commits
of the store. A kill at a read is the same as one at the next effect.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from itertools import count
from pathlib import Path
from threading import Lock

import pytest
from msgspec import Struct

from mergeyard.domain.config import Config, HeadBranchFallback, MergeMethod
from mergeyard.domain.ids import Sha
from mergeyard.ports.store import StoreUnavailable
from mergeyard.ports.writes import Write
from tests.support.asynchronous import asynchronous
from tests.support.forge_drivers.registry import FORGE_DRIVERS
from tests.support.forge_scenario import ForgeScenario, a_forge_scenario
from tests.support.forges.faults import ALWAYS, ActsFirst, LosesResponse, RespondsWith
from tests.support.http_server import App, Receive, Scope, Send
from tests.support.scenario import KEY, MINUTE

pytestmark = pytest.mark.long

FORK = "eve/app"
FORK_PUSH = f"/{FORK}.git/git-receive-pack"
TARGET_PUSH = "/acme/app.git/git-receive-pack"
READS = ("/git-upload-pack", "/graphql")
"""Requests with POST that only read."""
EVERY_EFFECT = ""
LANDING_EFFECTS = "git-receive-pack|SaveDecision"
"""Without those of comments, commit statuses and cursors."""


class Moment(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    """The effect takes place, and its answer is lost."""


class Kill:
    """Ends the process at one of its effects. From then on, no request of it reaches the Git host, no commit the store,
    and no webhook the process."""

    def __init__(self, scenario: ForgeScenario, at: int, moment: Moment, counted: str) -> None:
        self.effects: list[str] = []
        """Those that match the pattern `counted`, up to the one at which the process is killed."""
        self.is_dead = False
        self._deliveries = scenario.forge.deliveries
        self._at = at
        self._moment = moment
        self._counted = counted
        self._lock = Lock()

    def __str__(self) -> str:
        place = f"{self._moment} effect {self._at}" if self.is_dead else "after the last effect"
        return f"killed {place} of: " + "; ".join(f"{at}. {effect}" for at, effect in enumerate(self.effects, start=1))

    async def apply(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        is_read = scope["method"] == "GET" or scope["path"].endswith(READS)
        if self.is_dead or not (is_read or self._allows(f"{scope['method']} {scope['path']}")):
            await RespondsWith(503).apply(app, scope, receive, send)
        elif self.is_dead:
            await LosesResponse().apply(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    def check_commit(self, writes: Sequence[Write]) -> None:
        if not self._allows("commit of " + ", ".join(type(write).__name__ for write in writes)):
            raise StoreUnavailable("the process was killed")

    def _allows(self, effect: str) -> bool:
        """Whether the effect takes place. The fake Git host has its own thread."""
        with self._lock:
            if self.is_dead:
                return False
            if re.search(self._counted, effect):
                self.effects.append(effect)
                self.is_dead = self._deliveries.drop_all = len(self.effects) == self._at
            return not self.is_dead or self._moment is Moment.AFTER


class Landing:
    """A landing for which only the last check is missing. The last of its pull requests is from a fork."""

    def __init__(self, scenario: ForgeScenario, numbers: Sequence[int]) -> None:
        self.scenario = scenario
        self.numbers = numbers
        self.head = scenario.forge.head(numbers[-1])
        self.tested = scenario.run_of(*numbers).tip
        self.had_landed = False
        """Before the process was killed."""
        self._subjects_before = scenario.origin.subjects("main")
        self._own_subjects = scenario.origin.subjects(self.tested)[len(self._subjects_before) :]
        self._fork = scenario.forge.git_server.origin(FORK)
        self._branch = f"feature{numbers[-1]}"

    @property
    def head_in_fork(self) -> Sha:
        return self._fork.tip(self._branch)

    @property
    def is_target_pushed(self) -> bool:
        return "foreign" in self.scenario.origin.files("main")

    def push_to_target(self) -> None:
        """Another user does."""
        self.scenario.forge.push_to_main({"foreign": "f\n"})

    def push_to_fork(self) -> None:
        """The author does, by force."""
        self._fork.set_ref(self._branch, self.head)
        self.scenario.forge.push(self.numbers[-1], {"more": "more\n"})

    def check_target(self, *, has_landed: bool, is_retested: bool = False) -> None:
        """The target branch has the commits of the landing once or not at all, and those of others."""
        foreign = ["A change"] if self.is_target_pushed else []
        own = self._own_subjects if has_landed else []
        new = [*foreign, *own] if is_retested else [*own, *foreign]
        assert self.scenario.origin.subjects("main") == [*self._subjects_before, *new]
        assert self.scenario.test_branches() == []

    async def check_merged(self, tested: Sha, *, is_retested: bool = False) -> None:
        """With the tested commit, which the Git host knows as the head."""
        scenario, fork = self.scenario, self.numbers[-1]
        states = {number: await scenario.state(number) for number in self.numbers}
        assert states == dict.fromkeys(self.numbers, "merged: merged_by_queue")
        assert all(scenario.forge.is_merged(number) for number in self.numbers)
        assert (await scenario.submission(fork)).merged_sha == tested
        assert self.head_in_fork == scenario.forge.head(fork) == tested
        assert tested in scenario.origin.log("main", "%H")
        self.check_target(has_landed=True, is_retested=is_retested)
        audit = await scenario.service.merge_auditor.audit_on_request(KEY, 20)
        assert (audit.mismatches, {landing.form.value for landing in audit.landings}) == ((), {"tested_commit"})


Act = Callable[[Landing], object]
Check = Callable[[Landing], Awaitable[None]]


class Kills(Struct, frozen=True):
    """Plays the same landing again and again, and kills the service at the next effect each time."""

    folder: Path
    forge: str
    method: MergeMethod
    moment: Moment

    async def kill_everywhere(
        self,
        check: Check,
        counted: str = LANDING_EFFECTS,
        numbers: Sequence[int] = (1,),
        at_head_move: Act = lambda _: None,
        while_down: Act = lambda _: None,
    ) -> None:
        config = Config(
            merge_method=self.method,
            head_branch_fallback=HeadBranchFallback.CLOSE,
            batch=len(numbers) > 1,
            batching_min_size=2,
        )
        for at in count(1):
            async with a_forge_scenario(
                self.folder / str(at), FORGE_DRIVERS[self.forge], config, poll_seconds=60
            ) as scenario:
                kill = Kill(scenario, at, self.moment, counted)
                try:
                    landing = await prepare(scenario, numbers)
                    await interrupt(landing, kill, at_head_move, while_down)
                    await check(landing)
                except BaseException as error:
                    error.add_note(str(kill))
                    raise
            if not kill.is_dead:
                pushes = [effect for effect in kill.effects if effect.endswith((FORK_PUSH, TARGET_PUSH))]
                assert len(pushes) >= 2
                return


async def prepare(scenario: ForgeScenario, numbers: Sequence[int]) -> Landing:
    forge, fork = scenario.forge, numbers[-1]
    scenario.open(*numbers[:-1])
    await scenario.open_fork(fork)
    forge.push(fork, {"second": "commit\n"})
    forge.allow_edits(fork)
    forge.push_to_main({"main": "moved\n"})
    await scenario.wait_until_idle()
    for number in numbers:
        await scenario.submit(number, head=forge.head(number))
    return Landing(scenario, numbers)


async def interrupt(landing: Landing, kill: Kill, at_head_move: Act, while_down: Act) -> None:
    """The last check passes, the process is killed, and another one starts."""
    scenario = landing.scenario
    faults = scenario.forge.faults
    scenario.store.before_commit = kill.check_commit
    faults.plan(ActsFirst(lambda: at_head_move(landing), kill), f"{FORK_PUSH}$")
    faults.plan(kill, times=ALWAYS)
    await scenario.passes(*landing.numbers)
    await scenario.service.stop()
    faults.clear()
    landing.had_landed = landing.tested in scenario.origin.log("main", "%H")
    while_down(landing)
    scenario.forge.deliveries.drop_all = False
    await scenario.start()
    await scenario.advance_time(3 * MINUTE)


CASES = [
    ("github", MergeMethod.SQUASH, Moment.BEFORE),
    ("github", MergeMethod.REBASE, Moment.AFTER),
    ("gitlab", MergeMethod.SQUASH, Moment.BEFORE),
    ("gitlab", MergeMethod.REBASE, Moment.AFTER),
]
"""A kill after an effect and one before the next one are the same unless both take place at the same time."""


@pytest.fixture
def kills(request: pytest.FixtureRequest, tmp_path: Path) -> Kills:
    return Kills(tmp_path, *request.param)


in_all_cases = pytest.mark.parametrize("kills", CASES, indirect=True, ids="-".join)
in_one_case = pytest.mark.parametrize("kills", CASES[1:2], indirect=True, ids="-".join)
in_two_cases = pytest.mark.parametrize("kills", CASES[::3], indirect=True, ids="-".join)


async def check_landed_as_tested(landing: Landing) -> None:
    assert landing.scenario.origin.tip("main") == landing.tested
    await landing.check_merged(landing.tested)


async def check_landed_with_a_push_to_the_target(landing: Landing) -> None:
    """Before that push as it was tested, or after it, moved back in between and tested again."""
    scenario = landing.scenario
    if landing.had_landed or not landing.is_target_pushed:
        return await landing.check_merged(landing.tested)
    assert landing.head_in_fork == scenario.forge.head(landing.numbers[-1]) == landing.head
    tested = scenario.run_of(*landing.numbers).tip
    await scenario.passes(*landing.numbers)
    await scenario.advance_time(3 * MINUTE)
    return await landing.check_merged(tested, is_retested=True)


@in_all_cases
@asynchronous
async def test_a_landing_that_is_killed_at_any_boundary_is_finished(kills: Kills):
    await kills.kill_everywhere(check_landed_as_tested, EVERY_EFFECT)


@in_one_case
@asynchronous
async def test_a_landing_of_an_own_branch_and_a_fork_that_is_killed_at_any_boundary_is_finished(kills: Kills):
    await kills.kill_everywhere(check_landed_as_tested, numbers=(1, 2))


@in_two_cases
@asynchronous
async def test_a_forced_push_of_the_author_while_the_service_is_down_is_kept(kills: Kills):
    async def check(landing: Landing) -> None:
        scenario, has_landed = landing.scenario, landing.had_landed
        assert "more" in scenario.forge.git_server.origin(FORK).files(landing.head_in_fork)
        assert await scenario.state(1) == ("merged: merged_by_queue" if has_landed else "cancelled: pr_pushed")
        assert (scenario.forge.is_merged(1), scenario.forge.is_open(1)) == (has_landed, not has_landed)
        landing.check_target(has_landed=has_landed)

    await kills.kill_everywhere(check, while_down=Landing.push_to_fork)


@in_two_cases
@asynchronous
async def test_the_head_is_moved_back_if_the_target_branch_moves_while_the_service_is_down(kills: Kills):
    await kills.kill_everywhere(check_landed_with_a_push_to_the_target, while_down=Landing.push_to_target)


@in_two_cases
@asynchronous
async def test_a_landing_that_is_killed_while_it_gives_up_moves_the_head_back(kills: Kills):
    """The target branch moves when the head in the fork does."""
    await kills.kill_everywhere(check_landed_with_a_push_to_the_target, at_head_move=Landing.push_to_target)
