"""The traffic of one queue in a closed loop: for each submission that concludes, another pull request is submitted."""

import time
from collections import defaultdict
from random import Random
from threading import Event
from typing import Any

from tests.soak.evidence import IncrementalCi, IncrementalHostLog, IndexedEvidence
from tests.soak.pull_requests import PullRequestFactory, PullRequestKind, SoakPullRequest, initial_files
from tests.support.api_client import ApiClient, ApiRefused
from tests.support.environment import QueueEnvironment
from tests.support.repositories import Origin

POLL_INTERVAL_S = 0.02
READY_TIMEOUT_S = 5.0
"""Afterwards a pull request with a conflict is cancelled; in production its author would push."""
DRAIN_TIMEOUT_S = 180.0
MAY_CONFLICT = frozenset({PullRequestKind.TWIN, PullRequestKind.LEFT, PullRequestKind.RIGHT})
CANCELLED_EVERY = 30
"""One of this many pull requests is cancelled by its author."""
CANCEL_PROBABILITY = 0.1
"""Per step, so that it happens in any state."""


class MeasuredApi(ApiClient):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.milliseconds = defaultdict[str, list[float]](list)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        started_at = time.perf_counter()
        try:
            return super().post(path, key=key, **members)
        finally:
            self.milliseconds[path].append(1000 * (time.perf_counter() - started_at))


class QueueTraffic(QueueEnvironment):
    def __init__(self, origin: Origin, host_log: IncrementalHostLog, api: MeasuredApi, seed: str) -> None:
        super().__init__(origin, host_log, api)
        origin.commit(self.target_branch, initial_files())
        self.ci = IncrementalCi(origin, host_log, api)
        self.evidence = IndexedEvidence(origin, host_log, api, self.ci)
        self.milliseconds = api.milliseconds
        self.wanted_live = 0
        """The wanted number of pull requests in progress."""
        self.concluded = 0
        self.pull_requests = dict[int, SoakPullRequest]()
        self.cancelled = set[int]()
        """Cancelled by their authors."""
        self._random = Random(seed)
        self._sheets = PullRequestFactory(origin, self.target_branch, self._random)
        self.live = dict[int, float]()
        """Submitted pull requests that are not known to be concluded, with the time of their submission."""

    def run_until(self, stop: Event) -> None:
        while not stop.is_set():
            self._step()
            stop.wait(POLL_INTERVAL_S)

    def drain(self) -> None:
        """Submits no more pull requests, and waits until all submissions are concluded."""
        self.wanted_live = 0
        deadline = time.monotonic() + DRAIN_TIMEOUT_S
        while self.live and time.monotonic() < deadline:
            self._step()
            time.sleep(POLL_INTERVAL_S)

    def _step(self) -> None:
        self.ci.report_new_branches()
        self._update_live()
        while len(self.live) < self.wanted_live:
            self._submit(self._sheets.next())
        self._cancel_some()

    def _update_live(self) -> None:
        states = {pull["prNumber"]: pull["state"] for pull in self.enqueued()}
        for number in self.live.keys() - states.keys():
            del self.live[number]
            self.concluded += 1
        ready_since = time.monotonic() - READY_TIMEOUT_S
        for number, since in self.live.items():
            if states[number] == "not_ready" and since < ready_since and self._may_conflict(number):
                self._cancel(number)

    def _may_conflict(self, number: int) -> bool:
        """It is a twin, or has one, or its pair uses a slot that an earlier pair still uses."""
        next_pull = self.pull_requests.get(number + 1)
        has_a_twin = next_pull is not None and next_pull.kind is PullRequestKind.TWIN
        return self.pull_requests[number].kind in MAY_CONFLICT or has_a_twin

    def _submit(self, pull: SoakPullRequest) -> None:
        self.pull_requests[pull.number] = pull
        self.submit(pull.number)
        self.live[pull.number] = time.monotonic()

    def _cancel_some(self) -> None:
        due = {number for number in self.live if number % CANCELLED_EVERY == 0} - self.cancelled
        for number in due:
            if self._random.random() < CANCEL_PROBABILITY:
                self.cancelled.add(number)
                self._cancel(number)

    def _cancel(self, number: int) -> None:
        try:
            self.cancel(number)
        except ApiRefused as refused:
            if refused.status >= 500:
                raise
