"""Plays one round: a repository and its queue, from the first pull request until everybody's fate is decided."""

from collections import Counter
from pathlib import Path
from random import Random

from msgspec import Struct

from mergeyard.domain.states import PrState, QueueState
from tests.campaign.contents import KINDS, REFUSED, first_files
from tests.campaign.judging import Judge
from tests.campaign.meddling import Meddling
from tests.campaign.mirrors import flaws_of_mirrors
from tests.campaign.oracle import Oracle
from tests.campaign.people import People
from tests.campaign.plan import LANES, Plan
from tests.campaign.verdicts import Verdicts
from tests.campaign.yard import CampaignYard, a_campaign_yard
from tests.support.api import Refused
from tests.support.promises import broken_promises
from tests.support.scenario import SECOND

MOST_STEPS = 400
LAST_LOOKS = 3 * SECOND
"""Whoever could not be merged before may be mergeable upon what landed last."""
MOST_IDLE = 5
"""Steps without any run: whoever is left then waits for people."""


class Outcome(Struct, frozen=True, kw_only=True):
    seed: int
    plan: Plan
    sizes: tuple[int, ...] = ()
    """How many pull requests landed in each landing."""
    composed: int = 0
    direct: int = 0
    ends: dict[str, int] = {}
    kinds: dict[str, int] = {}
    """Of changes, in what landed."""
    meddling: dict[str, int] = {}
    speechless: int = 0
    faults: tuple[str, ...] = ()


async def play(seed: int, folder: Path) -> Outcome:
    folder.mkdir()
    chance = Random(seed)
    plan = Plan.drawn(seed, chance)
    async with a_campaign_yard(folder, first_files(chance), plan.settings) as yard:
        return await Round(seed, plan, yard, chance).play()


class Round:
    def __init__(self, seed: int, plan: Plan, yard: CampaignYard, chance: Random) -> None:
        self._seed = seed
        self._plan = plan
        self._yard = yard
        self._chance = chance
        self._people = People(yard.origin, chance, KINDS | REFUSED if plan.refused_names else KINDS)
        self._meddling = Meddling(yard, self._people, chance)
        self._stuck = list[str]()

    async def play(self) -> Outcome:
        first = 1
        for size in self._plan.waves:
            await self._come_in(range(first, first + size))
            await self._work(self._plan.meddling)
            first += size
        self._meddling.rest()
        await self._work(0)
        await self._yard.time_passes(LAST_LOOKS)
        await self._work(0)
        return await self._yard.apart(self._judged)

    async def _come_in(self, numbers: range) -> None:
        """One by one, or all at once when a paused queue goes on."""
        for number in numbers:
            proposal = self._people.propose(number)
            self._yard.set_pull(number, head=self._yard.origin.tip(proposal.branch), branch=proposal.branch)
        await self._yard.time_passes(SECOND)
        at_once = self._chance.random() < 0.6
        if at_once:
            await self._yard.ask("updateQueue", state="PAUSED")
        for number in self._chance.sample(numbers, len(numbers)):
            await self._submit(number)
        if at_once:
            await self._yard.ask("updateQueue", state="RUNNING")

    async def _submit(self, number: int) -> None:
        if self._plan.parallel:
            lanes = self._chance.sample(LANES, self._chance.choice((1, 1, 2)))
            await self._yard.ask("setImpactedTargets", pr={"number": number}, impactedTargets=lanes)
        if self._plan.direct:
            await self._yard.judge(self._yard.origin.tip(f"refs/pull/{number}/head"))
        try:
            await self._yard.ask("submitPullRequest", pr={"number": number})
        except Refused as refused:
            if refused.code != "pr_already_merged":
                raise

    async def _work(self, meddling: float) -> None:
        """Until nobody is left who could go on without a hand."""
        idle = 0
        for _ in range(MOST_STEPS):
            idle = 0 if self._yard.runs() else idle + 1
            if not self._unfinished() or idle > MOST_IDLE:
                return
            if self._chance.random() < meddling:
                self._meddling.meddle()
            if self._chance.random() < meddling / 8:
                await self._yard.starts_again()
            await self._step()
        self._stuck.append(f"it does not end: {self._yard.picture} {self._yard.keeper.queue.state}")

    async def _step(self) -> None:
        runs = sorted(self._yard.runs(), key=lambda run: [member.number for member in run.stack])
        if runs:
            await self._yard.judge(self._chance.choice(runs).tip)
        if not runs or self._chance.random() < 0.3:
            await self._yard.time_passes(2 * SECOND)

    def _unfinished(self) -> bool:
        queue = self._yard.keeper.queue
        return queue.state is QueueState.RUNNING and any(
            stay.state is not PrState.NOT_READY for stay in queue.submissions.values()
        )

    def _judged(self) -> Outcome:
        evidence = self._yard.evidence
        evidence.collect()
        oracle = Oracle(self._yard.origin, self._yard.folder / "oracle")
        judge = Judge(evidence, oracle, self._plan.method)
        verdicts = Verdicts(evidence, oracle, self._plan.method, tampered=self._meddling.tampered)
        faults = [*self._stuck, *broken_promises(evidence), *judge.faults(), *verdicts.faults()]
        landed = [evidence.stays_in(landing) for landing in evidence.landings]
        kinds = (self._people.proposals[stay["prNumber"]].kinds for stays in landed for stay in stays)
        return Outcome(
            seed=self._seed,
            plan=self._plan,
            sizes=tuple(map(len, landed)),
            composed=sum(each.run is not None and not evidence.landed_as_tested(each) for each in evidence.landings),
            direct=sum(landing.run is None for landing in evidence.landings),
            ends=Counter(f"{stay['state']}: {stay['reason']['code']}" for stay in evidence.stays.values()),
            kinds=Counter(kind for each in kinds for kind in each),
            meddling=Counter(self._meddling.done),
            speechless=judge.speechless,
            faults=(*faults, *flaws_of_mirrors(self._yard.folder / "mirrors")),
        )
