"""The parameters of a round, drawn from its seed: the queue's settings, the pull requests and the interference."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Self

from msgspec import Struct

from mergeyard.domain.states import PullRequestState, QueueState
from mergeyard.engine.views import render_text
from tests.campaign.checks import HeadChecker, LandingChecker, OutcomeChecker
from tests.campaign.contents import CHANGE_KINDS, REFUSED_KINDS, first_files
from tests.campaign.evidence import DetailedEvidence
from tests.campaign.interference import Interference
from tests.campaign.isolation import check_mirrors
from tests.campaign.life import Life
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
    life: float
    """The probability that a pull request is one of those that a repository has only after a while."""
    releases: int
    """How many release branches with a queue there are."""

    @classmethod
    def draw(cls, seed: int, chance: Random) -> Self:
        heads, life = Random(f"heads {seed}"), Random(f"life {seed}")
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
            life=life.choice((0.0, 0.5, 0.8)),
            releases=life.choice((0, 0, 1, 2)),
        )

    @property
    def later_waves(self) -> tuple[int, ...]:
        """A life takes time."""
        return (2, 3) if self.life else ()

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
AUDITED = 100
"""Merges that the audit compares at the end of a round."""
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
        self._life = Life(scenario, self._people, Random(f"life of {seed}"), plan.life)
        self._stuck = list[str]()

    async def play(self) -> Outcome:
        first = 1
        for wave, size in enumerate((*self._plan.waves, *self._plan.later_waves)):
            await self._create_release(wave)
            await self._submit_wave(range(first, first + size))
            await self._work(self._plan.interference, self._plan.authors, is_lively=True)
            first += size
        self._meddling.stop()
        await self._work(0)
        await self._scenario.advance_time(LAST_POLLS_MS)
        await self._work(0)
        await self._audit()
        return await self._scenario.run_in_thread(self._checked)

    async def _audit(self) -> None:
        """Where no push interfered, every queue still runs, and the audit has nothing to say."""
        if self._plan.interference or self._plan.authors:
            return
        for queue_actor in self._scenario.service.registry:
            audit = self._scenario.service.merge_auditor.audit_on_request(queue_actor.key, AUDITED)
            report = await self._scenario.while_time_passes(audit)
            self._stuck += [f"the audit of {queue_actor.key.branch}: {each.message}" for each in report.mismatches]
            if queue_actor.queue.state is not QueueState.RUNNING:
                self._stuck.append(f"the queue of {queue_actor.key.branch} is {queue_actor.queue.state}")

    async def _create_release(self, wave: int) -> None:
        """The first one comes before the first pull requests, the second after some of them merged."""
        if self._plan.life and wave < self._plan.releases:
            branch = f"release/{wave + 1}"
            self._scenario.origin.branch(branch, base="main")
            await self._scenario.add_queue(branch, self._plan.settings)

    async def _submit_wave(self, numbers: range) -> None:
        """One by one, or all at once when a paused queue is resumed."""
        for number in numbers:
            proposal = self._life.propose(number)
            tip = self._scenario.origin.tip(proposal.branch)
            self._scenario.set_pull_request(number, head=tip, branch=proposal.branch, base=proposal.base)
        await self._scenario.advance_time(SECOND)
        together = self._chance.random() < 0.6
        if together:
            await self._scenario.post("updateQueue", state="PAUSED")
        for number in self._chance.sample(numbers, len(numbers)):
            await self._submit(number)
        if together:
            await self._scenario.post("updateQueue", state="RUNNING")

    async def _submit(self, number: int) -> None:
        base = self._people.pull_requests[number].base
        if self._plan.parallel:
            lanes = self._chance.sample(LANES, self._chance.choice((1, 1, 2)))
            await self._scenario.post("setImpactedTargets", base, pr={"number": number}, impactedTargets=lanes)
        if self._plan.direct:
            await self._scenario.report_result(base, self._scenario.origin.tip(f"refs/pull/{number}/head"))
        try:
            await self._scenario.post("submitPullRequest", base, pr={"number": number})
        except ApiRefused as refused:
            if refused.code not in ("pr_already_merged", "merge_in_progress"):
                raise

    async def _work(self, meddling: float, authors: float = 0, *, is_lively: bool = False) -> None:
        """Until no pull request is left that can proceed without its author."""
        idle = 0
        for _ in range(MAX_STEPS):
            is_landing = any(queue.landing is not None for queue in self._scenario.queues.values())
            is_busy = is_landing or self._scenario.all_runs()
            idle = 0 if is_busy else idle + 1
            if not self._unfinished() or idle > MAX_IDLE_STEPS:
                return
            if self._chance.random() < meddling:
                self._meddling.interfere()
            if self._authors.random() < authors:
                self._meddling.let_author_act()
            if is_lively:
                self._life.push()
            await self._submit_again()
            if self._chance.random() < meddling / 8:
                await self._scenario.restart()
            await self._step()
        texts = [f"{render_text(queue)} {queue.state}" for queue in self._scenario.queues.values()]
        self._stuck.append(f"it does not finish: {texts}")

    async def _submit_again(self) -> None:
        """A while after the author asked for it, so that the queue has read the new head."""
        if self._authors.random() < 0.3:
            for number in self._meddling.take_resubmitted():
                await self._submit(number)

    async def _step(self) -> None:
        runs = sorted(self._scenario.all_runs(), key=lambda each: [member.number for member in each[1].stack])
        if runs:
            branch, run = self._chance.choice(runs)
            await self._scenario.report_result(branch, run.tip)
        if not runs or self._chance.random() < 0.3:
            await self._scenario.advance_time(2 * SECOND)

    def _unfinished(self) -> bool:
        queues = [queue for queue in self._scenario.queues.values() if queue.state is QueueState.RUNNING]
        submissions = [submission for queue in queues for submission in queue.submissions.values()]
        return any(submission.state is not PullRequestState.NOT_READY for submission in submissions)

    def _checked(self) -> Outcome:
        sites = self._scenario.sites
        for site in sites.values():
            site.evidence.collect()
        oracle = Oracle(self._scenario.origin, self._scenario.folder / "oracle")
        checks = [
            QueueCheck.make(site.evidence, oracle, self._plan, self._meddling, self._life) for site in sites.values()
        ]
        faults = [*self._stuck, *(fault for check in checks for fault in check.faults)]
        for site in sites.values():
            faults += site.evidence.wrong_signatures(self._scenario.allowed_signers)
        faults += check_mirrors(self._scenario.folder / "mirrors")
        evidence = [site.evidence for site in sites.values()]
        submissions = [submission for each in evidence for submission in each.submissions.values()]
        landings = [(each, landing) for each in evidence for landing in each.landings]
        landed = [each.submissions_in(landing) for each, landing in landings]
        kinds = (
            self._people.pull_requests[submission["prNumber"]].kinds
            for submissions in landed
            for submission in submissions
        )
        return Outcome(
            seed=self._seed,
            plan=self._plan,
            sizes=tuple(map(len, landed)),
            rebased=sum(landing.run is not None and not each.landed_as_tested(landing) for each, landing in landings),
            direct=sum(submission["reason"]["code"] == "merged_directly" for submission in submissions),
            ends=Counter(f"{submission['state']}: {submission['reason']['code']}" for submission in submissions),
            kinds=Counter(kind for each in kinds for kind in each),
            interference=Counter((*self._meddling.done, *self._life.done)),
            heads=sum((check.heads for check in checks), Counter[str]()),
            signed=sum(len(each.landed_commits(landing)) for each, landing in landings),
            not_comparable=sum(check.not_comparable for check in checks),
            faults=tuple(faults),
        )


def broken_but_for_known_limits(evidence: DetailedEvidence) -> Iterator[str]:
    """While the Git host shows a moved head, a person can merge it there: this merges the tested commit, and the
    service takes it for its own merge."""
    by_hand = evidence.merged_by_hand_as_tested()
    commits = evidence.tested_commits_brought_by_others()
    for broken in broken_promises(evidence):
        is_merged_by_hand = broken.startswith("s5") and any(name in broken for name in by_hand)
        is_moved_by_hand = broken.startswith("s14") and any(commit in broken for commit in commits)
        if not (is_merged_by_hand or is_moved_by_hand):
            yield broken


class QueueCheck(Struct, frozen=True):
    """What was found out about one queue."""

    faults: tuple[str, ...]
    heads: Counter[str]
    not_comparable: int

    @classmethod
    def make(
        cls, evidence: DetailedEvidence, oracle: Oracle, plan: RoundPlan, meddling: Interference, life: Life
    ) -> Self:
        landings = LandingChecker(evidence, oracle, plan.method)
        outcomes = OutcomeChecker(
            evidence, oracle, plan.method, tampered=meddling.tampered, pushed=meddling.pushed | life.shared
        )
        heads = HeadChecker(evidence, plan.method, meddling.disturbed, life.shared, is_moved=plan.moves_heads)
        found = (broken_but_for_known_limits(evidence), landings.faults(), outcomes.faults(), heads.faults())
        return cls(tuple(fault for each in found for fault in each), heads.counted, landings.not_comparable)
