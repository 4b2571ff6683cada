"""A simulated CI that tests every test branch and reports the results to the service or to the host."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from mergeyard.domain.ids import Sha
from mergeyard.domain.pull_requests import Status, StatusState
from mergeyard.domain.timestamps import Instant
from tests.simulation.api_client import SimApi
from tests.simulation.faults import Family, FaultInjector
from tests.simulation.host import HostState
from tests.support.host_log import TEST_BRANCH_PREFIX
from tests.support.world.repository import CheckRules

MAX_TEST_S = 15.0
MAX_DELAY_S = 600.0


class SimCi:
    def __init__(
        self,
        host_state: HostState,
        check_rules: CheckRules,
        faults: FaultInjector,
        rng: Random,
        statuses: tuple[str, ...],
        api: SimApi | None,
        start: Callable[[Any], None],
    ) -> None:
        """Without the API, results are reported to the host."""
        self.passed: defaultdict[Sha, set[str]] = defaultdict(set)
        self.failed = set[Sha]()
        """Commits that were ever reported as failed, correctly or not."""
        self.reported_falsely = False
        self._host_state = host_state
        self._check_rules = check_rules
        self._faults = faults
        self._rng = rng
        self._statuses = statuses
        self._api = api
        self._start = start
        self._seen = set[Sha]()
        self._log_position = 0

    def start_new_tests(self) -> None:
        """For all test branches that were pushed since the last call."""
        log = self._host_state.origin.log
        for transaction in log[self._log_position :]:
            for move in transaction.updates:
                if move.ref.startswith(TEST_BRANCH_PREFIX) and move.new is not None and move.new not in self._seen:
                    self._seen.add(move.new)
                    self._start(self._test(move.new))
        self._log_position = len(log)

    def report_all(self, awaited: Iterable[Sha]) -> None:
        """Reports correct results for all test branches, and for awaited commits whose branch is gone."""
        refs = sorted(self._host_state.origin.refs.items())
        pushed = [sha for ref, sha in refs if ref.startswith(TEST_BRANCH_PREFIX)]
        for sha in dict.fromkeys((*pushed, *awaited)):
            self._start(self.report(sha, self.evaluate(sha)))

    def evaluate(self, sha: Sha) -> StatusState:
        passes = self._check_rules.passes(self._host_state.origin.objects.files(sha))
        return StatusState.SUCCESS if passes else StatusState.FAILURE

    async def _test(self, sha: Sha) -> None:
        odd = self._faults.occurs(Family.ODD_CI)
        behavior = self._rng.choice(("silent", "late", "flaky", "contradictory")) if odd else "good"
        if behavior == "silent":
            return
        await asyncio.sleep(MAX_DELAY_S * self._rng.random() if behavior == "late" else MAX_TEST_S * self._rng.random())
        if behavior in {"flaky", "contradictory"}:
            self.reported_falsely = True
            await self.report(sha, StatusState.FAILURE)
        if behavior != "flaky":
            await self.report(sha, self.evaluate(sha))

    async def report(self, sha: Sha, state: StatusState) -> None:
        if state is StatusState.FAILURE:
            self.failed.add(sha)
        for context in self._statuses:
            if state is StatusState.SUCCESS:
                self.passed[sha].add(context)
            await self._send(sha, context, state)

    async def _send(self, sha: Sha, context: str, state: StatusState) -> None:
        if self._api is None:
            self._host_state.set_status(sha, Status(context=context, state=state, at=Instant(0)))
            return
        await self._api.post_until_answered("reportCommitStatus", sha=sha, context=context, state=state)
