"""The parameters of a round, drawn from its seed: the queue's settings, the pull requests and the interference."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Self

from msgspec import Struct

from mergeyard.domain.states import PullRequestState, QueueState
from tests.campaign.checks import HeadChecker, LandingChecker, OutcomeChecker
from tests.campaign.contents import CHANGE_KINDS, REFUSED_KINDS, first_files
from tests.campaign.interference import Interference
from tests.campaign.isolation import check_mirrors
from tests.campaign.oracle import Oracle
from tests.campaign.people import People
from tests.campaign.scenario import CampaignScenario, a_campaign_scenario
from tests.support.api_client import ApiRefused
from tests.support.promises import broken_promises
from tests.support.scenario import SECOND

METHODS = ("merge_commit", "squash", "rebase")
LANES = ("fe", "be", "docs")


def method_of(seed: int) -> str:
    return METHODS[seed % len(METHODS)]


class RoundPlan(Struct, frozen=True, kw_only=True):
    method: str
    parallel: bool
    batch: int
    """How many pull requests are tested together."""
    concurrency: int
    waves: tuple[int, ...]
    """How many pull requests are submitted at a time."""
    interference: float
    """The probability of an interference on the Git host before each step."""
    direct: bool
    optimistic: bool
    refused_names: bool
    """Whether there are file names that git refuses: then plain git can reproduce few landings."""
    authors: float
    """The probability that the author of a pull request changes its head branch before each step."""
    moves_heads: bool
    heads_first: bool
    """Head branches move in a push of their own, before the target branch, as on GitHub and GitLab."""
    deletes_heads: bool

    @classmethod
    def draw(cls, seed: int, chance: Random) -> Self:
        heads = Random(f"heads {seed}")
        return cls(
            method=method_of(seed),
            parallel=chance.random() < 0.4,
            batch=chance.randint(1, 5),
            concurrency=chance.choice((1, 2, 5)),
            waves=tuple(chance.randint(1, 5) for _ in range(chance.randint(1, 4))),
            interference=chance.choice((0.0, 0.0, 0.3, 0.7)),
            direct=chance.random() < 0.15,
            optimistic=chance.random() < 0.2,
            refused_names=chance.random() < 0.1,
            authors=heads.choice((0.0, 0.2, 0.5)),
            moves_heads=heads.random() < 0.9,
            deletes_heads=heads.random() < 0.25,
            heads_first=heads.random() < 0.5,
        )

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "mergeMethod": self.method,
            "mode": "parallel" if self.parallel else "single",
            "batch": self.batch > 1,
            "batchingMinSize": self.batch,
            "batchingMaxWaitTimeMinutes": 0,
            "concurrency": self.concurrency,
            "directMergeMode": "always" if self.direct else "off",
            "canOptimisticallyMerge": self.optimistic,
            "moveHeadBranches": self.moves_heads,
            "deleteHeadBranches": self.deletes_heads,
        }


MAX_STEPS = 400
LAST_POLLS_MS = 3 * SECOND
"""A pull request that conflicted before can be mergeable on the last tip."""
MAX_IDLE_STEPS = 5
"""Steps without a run or a landing: the pull requests that are left wait for their authors."""


class Outcome(Struct, frozen=True, kw_only=True):
    seed: int
    plan: RoundPlan
    sizes: tuple[int, ...] = ()
    """The number of pull requests of each landing."""
    rebased: int = 0
    direct: int = 0
    ends: dict[str, int] = {}
    kinds: dict[str, int] = {}
    """Kinds of changes in what landed."""
    interference: dict[str, int] = {}
    heads: dict[str, int] = {}
    """Where the head branches of merged pull requests are at the end."""
    signed: int = 0
    """Landed commits whose signatures were verified."""
    not_comparable: int = 0
    faults: tuple[str, ...] = ()


async def play_round(seed: int, folder: Path) -> Outcome:
    folder.mkdir()
    chance = Random(seed)
    plan = RoundPlan.draw(seed, chance)
    files = first_files(chance)
    async with a_campaign_scenario(folder, files, plan.settings, heads_first=plan.heads_first) as scenario:
        return await Round(seed, plan, scenario, chance).play()


class Round:
    def __init__(self, seed: int, plan: RoundPlan, scenario: CampaignScenario, chance: Random) -> None:
        self._seed = seed
        self._plan = plan
        self._scenario = scenario
        self._chance = chance
        self._people = People(
            scenario.origin, chance, CHANGE_KINDS | REFUSED_KINDS if plan.refused_names else CHANGE_KINDS
        )
        self._authors = Random(f"authors {seed}")
        self._meddling = Interference(scenario, self._people, chance, self._authors, heads_first=plan.heads_first)
        self._stuck = list[str]()

    async def play(self) -> Outcome:
        first = 1
        for size in self._plan.waves:
            await self._submit_wave(range(first, first + size))
            await self._work(self._plan.interference, self._plan.authors)
            first += size
        self._meddling.stop()
        await self._work(0)
        await self._scenario.advance_time(LAST_POLLS_MS)
        await self._work(0)
        return await self._scenario.run_in_thread(self._checked)

    async def _submit_wave(self, numbers: range) -> None:
        """One by one, or all at once when a paused queue is resumed."""
        for number in numbers:
            proposal = self._people.create_pull_request(number)
            self._scenario.set_pull_request(
                number, head=self._scenario.origin.tip(proposal.branch), branch=proposal.branch
            )
        await self._scenario.advance_time(SECOND)
        together = self._chance.random() < 0.6
        if together:
            await self._scenario.post("updateQueue", state="PAUSED")
        for number in self._chance.sample(numbers, len(numbers)):
            await self._submit(number)
        if together:
            await self._scenario.post("updateQueue", state="RUNNING")

    async def _submit(self, number: int) -> None:
        if self._plan.parallel:
            lanes = self._chance.sample(LANES, self._chance.choice((1, 1, 2)))
            await self._scenario.post("setImpactedTargets", pr={"number": number}, impactedTargets=lanes)
        if self._plan.direct:
            await self._scenario.report_result(self._scenario.origin.tip(f"refs/pull/{number}/head"))
        try:
            await self._scenario.post("submitPullRequest", pr={"number": number})
        except ApiRefused as refused:
            if refused.code not in ("pr_already_merged", "merge_in_progress"):
                raise

    async def _work(self, meddling: float, authors: float = 0) -> None:
        """Until no pull request is left that can proceed without its author."""
        idle = 0
        for _ in range(MAX_STEPS):
            is_busy = self._scenario.runs() or self._scenario.queue_actor.queue.landing is not None
            idle = 0 if is_busy else idle + 1
            if not self._unfinished() or idle > MAX_IDLE_STEPS:
                return
            if self._chance.random() < meddling:
                self._meddling.interfere()
            if self._authors.random() < authors:
                self._meddling.let_author_act()
            await self._submit_again()
            if self._chance.random() < meddling / 8:
                await self._scenario.restart()
            await self._step()
        self._stuck.append(f"it does not finish: {self._scenario.queue_text} {self._scenario.queue_actor.queue.state}")

    async def _submit_again(self) -> None:
        """A while after the author asked for it, so that the queue has read the new head."""
        if self._authors.random() < 0.3:
            for number in self._meddling.take_resubmitted():
                await self._submit(number)

    async def _step(self) -> None:
        runs = sorted(self._scenario.runs(), key=lambda run: [member.number for member in run.stack])
        if runs:
            await self._scenario.report_result(self._chance.choice(runs).tip)
        if not runs or self._chance.random() < 0.3:
            await self._scenario.advance_time(2 * SECOND)

    def _unfinished(self) -> bool:
        queue = self._scenario.queue_actor.queue
        return queue.state is QueueState.RUNNING and any(
            submission.state is not PullRequestState.NOT_READY for submission in queue.submissions.values()
        )

    def _checked(self) -> Outcome:
        evidence = self._scenario.evidence
        evidence.collect()
        oracle = Oracle(self._scenario.origin, self._scenario.folder / "oracle")
        landings = LandingChecker(evidence, oracle, self._plan.method)
        outcomes = OutcomeChecker(
            evidence, oracle, self._plan.method, tampered=self._meddling.tampered, pushed=self._meddling.pushed
        )
        heads = HeadChecker(evidence, self._plan.method, self._meddling.disturbed, is_moved=self._plan.moves_heads)
        faults = [*self._stuck, *broken_promises(evidence), *landings.faults(), *outcomes.faults(), *heads.faults()]
        faults += evidence.wrong_signatures(self._scenario.allowed_signers)
        landed = [evidence.submissions_in(landing) for landing in evidence.landings]
        kinds = (
            self._people.pull_requests[submission["prNumber"]].kinds
            for submissions in landed
            for submission in submissions
        )
        return Outcome(
            seed=self._seed,
            plan=self._plan,
            sizes=tuple(map(len, landed)),
            rebased=sum(each.run is not None and not evidence.landed_as_tested(each) for each in evidence.landings),
            direct=sum(
                submission["reason"]["code"] == "merged_directly" for submission in evidence.submissions.values()
            ),
            ends=Counter(
                f"{submission['state']}: {submission['reason']['code']}" for submission in evidence.submissions.values()
            ),
            kinds=Counter(kind for each in kinds for kind in each),
            interference=Counter(self._meddling.done),
            heads=heads.counted,
            signed=sum(len(evidence.landed_commits(landing)) for landing in evidence.landings),
            not_comparable=landings.not_comparable,
            faults=(*faults, *check_mirrors(self._scenario.folder / "mirrors")),
        )
