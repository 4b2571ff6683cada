"""One queue in a closed loop: so many pull requests are under way, and for each that ends another one is submitted."""

import time
from collections import defaultdict
from random import Random
from threading import Event
from typing import Any

from tests.soak.indexed_evidence import IndexedEvidence
from tests.soak.sheets import Kind, Pull, Sheets, ground
from tests.soak.tailing import TailedLog, TailingCi
from tests.support.api import Api, Refused
from tests.support.repositories import Origin
from tests.support.surroundings import Surroundings

PAUSE = 0.02
SECONDS_TO_BECOME_READY = 5.0
"""Afterwards whoever conflicts is given up; its author would push."""
SECONDS_TO_RUN_OUT = 180.0
MAY_CONFLICT = frozenset({Kind.TWIN, Kind.LEFT, Kind.RIGHT})
ONE_IN = 30
"""So many have one among them that is cancelled, for no reason."""
CHANCE_PER_STEP = 0.1
"""So it happens in any of its states."""


class MeasuredApi(Api):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.milliseconds = defaultdict[str, list[float]](list)

    def post(self, path: str, *, key: str | None = None, **members: Any) -> dict[str, Any]:
        begun = time.perf_counter()
        try:
            return super().post(path, key=key, **members)
        finally:
            self.milliseconds[path].append(1000 * (time.perf_counter() - begun))


class Track(Surroundings):
    def __init__(self, origin: Origin, host_log: TailedLog, api: MeasuredApi, seed: str) -> None:
        super().__init__(origin, host_log, api)
        origin.commit(self.target, ground())
        self.ci = TailingCi(origin, host_log, api)
        self.evidence = IndexedEvidence(origin, host_log, api, self.ci)
        self.milliseconds = api.milliseconds
        self.under_way = 0
        """So many shall be."""
        self.ended = 0
        self.pulls = dict[int, Pull]()
        self.cancelled = set[int]()
        """By their authors, for no reason."""
        self._random = Random(seed)
        self._sheets = Sheets(origin, self.target, self._random)
        self.live = dict[int, float]()
        """Whoever was submitted and is not known to have ended, and since when."""

    def go_on_until(self, enough: Event) -> None:
        while not enough.is_set():
            self._step()
            enough.wait(PAUSE)

    def run_out(self) -> None:
        """Nobody new comes, and everybody ends."""
        self.under_way = 0
        deadline = time.monotonic() + SECONDS_TO_RUN_OUT
        while self.live and time.monotonic() < deadline:
            self._step()
            time.sleep(PAUSE)

    def _step(self) -> None:
        self.ci.work()
        self._notice_who_ended()
        while len(self.live) < self.under_way:
            self._submit(self._sheets.next())
        self._cancel_somebody()

    def _notice_who_ended(self) -> None:
        states = {pull["prNumber"]: pull["state"] for pull in self.enqueued()}
        for number in self.live.keys() - states.keys():
            del self.live[number]
            self.ended += 1
        patience_ends = time.monotonic() - SECONDS_TO_BECOME_READY
        for number, since in self.live.items():
            if states[number] == "not_ready" and since < patience_ends and self._may_conflict(number):
                self._cancel(number)

    def _may_conflict(self, number: int) -> bool:
        """It is a twin, or has one, or its pair came too soon after another at the same place."""
        follower = self.pulls.get(number + 1)
        has_a_twin = follower is not None and follower.kind is Kind.TWIN
        return self.pulls[number].kind in MAY_CONFLICT or has_a_twin

    def _submit(self, pull: Pull) -> None:
        self.pulls[pull.number] = pull
        self.submit(pull.number)
        self.live[pull.number] = time.monotonic()

    def _cancel_somebody(self) -> None:
        due = {number for number in self.live if number % ONE_IN == 0} - self.cancelled
        for number in due:
            if self._random.random() < CHANCE_PER_STEP:
                self.cancelled.add(number)
                self._cancel(number)

    def _cancel(self, number: int) -> None:
        try:
            self.cancel(number)
        except Refused as refused:
            if refused.status >= 500:
                raise
