"""A CI that sees every test branch, and reports what is in it: to the service, or to the host that knows it then."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from mergeyard.domain.ids import Sha
from mergeyard.domain.instants import Instant
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.sim.checks import Truth
from tests.simulation.answering import SimApi
from tests.simulation.hosting import Hosting
from tests.simulation.weather import Family, Weather
from tests.support.host_log import TEST_BRANCHES

LONGEST_TEST = 15.0
LATE = 600.0


class SimCi:
    def __init__(
        self,
        hosting: Hosting,
        truth: Truth,
        weather: Weather,
        rng: Random,
        statuses: tuple[str, ...],
        api: SimApi | None,
        start: Callable[[Any], None],
    ) -> None:
        """Without the API, the host is told."""
        self.passed: defaultdict[Sha, set[str]] = defaultdict(set)
        self.failed = set[Sha]()
        """What was ever called red, rightly or not."""
        self.lied = False
        self._hosting = hosting
        self._truth = truth
        self._weather = weather
        self._rng = rng
        self._statuses = statuses
        self._api = api
        self._start = start
        self._seen = set[Sha]()
        self._place = 0

    def look(self) -> None:
        """At what was pushed since."""
        log = self._hosting.origin.log
        for transaction in log[self._place :]:
            for move in transaction.moves:
                if move.ref.startswith(TEST_BRANCHES) and move.new is not None and move.new not in self._seen:
                    self._seen.add(move.new)
                    self._start(self._test(move.new))
        self._place = len(log)

    def test_anew(self, awaited: Iterable[Sha]) -> None:
        """All that is there, and what somebody waits for though its branch is gone; and this time faithfully."""
        refs = sorted(self._hosting.origin.refs.items())
        there = [sha for ref, sha in refs if ref.startswith(TEST_BRANCHES)]
        for sha in dict.fromkeys((*there, *awaited)):
            self._start(self.report(sha, self.verdict(sha)))

    def verdict(self, sha: Sha) -> StatusState:
        green = self._truth.green(self._hosting.origin.objects.files(sha))
        return StatusState.SUCCESS if green else StatusState.FAILURE

    async def _test(self, sha: Sha) -> None:
        oddly = self._weather.strikes(Family.ODD_CI)
        mood = self._rng.choice(("silent", "late", "flaky", "contradictory")) if oddly else "good"
        if mood == "silent":
            return
        await asyncio.sleep(LATE * self._rng.random() if mood == "late" else LONGEST_TEST * self._rng.random())
        if mood in {"flaky", "contradictory"}:
            self.lied = True
            await self.report(sha, StatusState.FAILURE)
        if mood != "flaky":
            await self.report(sha, self.verdict(sha))

    async def report(self, sha: Sha, state: StatusState) -> None:
        if state is StatusState.FAILURE:
            self.failed.add(sha)
        for context in self._statuses:
            if state is StatusState.SUCCESS:
                self.passed[sha].add(context)
            await self._tell(sha, context, state)

    async def _tell(self, sha: Sha, context: str, state: StatusState) -> None:
        if self._api is None:
            self._hosting.set_status(sha, Status(context=context, state=state, at=Instant(0)))
            return
        await self._api.insist("reportCommitStatus", sha=sha, context=context, state=state)
