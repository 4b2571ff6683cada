"""What people and the CI of one queue do, at random, while replicas come and go; they insist on every answer."""

import subprocess
from random import Random
from threading import Event
from typing import Any

from tests.support.api import Refused
from tests.support.repositories import ENVIRONMENT
from tests.support.surroundings import Surroundings

MOST_AT_ONCE = 4
SECONDS_BETWEEN_ACTS = 0.05
LANES: tuple[str, ...] = ("front", "back", "docs")
BROKEN_TOGETHER = ("left", "right")


class People:
    def __init__(self, queue: Surroundings, random: Random) -> None:
        self._queue = queue
        self._random = random
        self._parallel = queue.api.post("getQueue")["mode"] == "parallel"
        self._live: list[int] = []

    def act_until(self, enough: Event) -> None:
        while not enough.wait(SECONDS_BETWEEN_ACTS):
            self._act()
            self._queue.ci.work()

    def _act(self) -> None:
        acts = {
            self._open_and_submit: 10,
            self._cancel: 2,
            self._restart: 1,
            self._push: 1,
            self._pause_or_run: 1,
            self._push_to_target: 1,
        }
        self._random.choices(list(acts), list(acts.values()))[0]()

    def _ask(self, path: str, **members: Any) -> dict[str, Any] | None:
        """None is a refusal."""
        try:
            return self._queue.api.post(path, **members)
        except Refused as refused:
            if refused.status >= 500:
                raise
            return None

    def _open_and_submit(self) -> None:
        self._live = [number for number in self._live if self._is_live(number)]
        if len(self._live) >= MOST_AT_ONCE:
            return
        change = self._change()
        number = self._queue.open_pr(change)
        if self._parallel:
            self._ask("setImpactedTargets", pr={"number": number}, impactedTargets=self._lanes_of(change))
        self._ask("submitPullRequest", pr={"number": number})
        self._live.append(number)

    def _change(self) -> dict[str, str]:
        unique = f"{self._random.getrandbits(32):08x}"
        match self._random.randrange(10):
            case 0:
                return {f"bad-{unique}": "1"}
            case 1:
                return {"README": unique}
            case 2:
                return {self._random.choice(BROKEN_TOGETHER): unique}
            case _:
                return {f"files/{unique}": "1"}

    def _lanes_of(self, change: dict[str, str]) -> list[str]:
        lanes = self._random.sample(LANES, self._random.randint(1, 2))
        return lanes if change.keys().isdisjoint(BROKEN_TOGETHER) else [*lanes, "what breaks together"]

    def _is_live(self, number: int) -> bool:
        pull = self._ask("getSubmittedPullRequest", pr={"number": number})
        return pull is not None and pull["isCurrentlySubmittedToQueue"]

    def _cancel(self) -> None:
        self._to_one_of_them("cancelPullRequest")

    def _restart(self) -> None:
        self._to_one_of_them("restartTestsOnPullRequest")

    def _to_one_of_them(self, path: str) -> None:
        if self._live:
            self._ask(path, pr={"number": self._random.choice(self._live)})

    def _push(self) -> None:
        if not self._live:
            return
        number, origin = self._random.choice(self._live), self._queue.origin
        meta = self._queue.meta(number)
        if meta["state"] == "open":
            origin.commit(meta["branch"], {f"pushed/{self._random.getrandbits(32)}": "1"})
            origin.set(f"refs/pull/{number}/head", origin.tip(meta["branch"]))

    def _pause_or_run(self) -> None:
        self._ask("updateQueue", state=self._random.choice(("PAUSED", "RUNNING", "RUNNING")))

    def _push_to_target(self) -> None:
        """Somebody may be quicker; then it is given up."""
        origin, target = self._queue.origin, self._queue.target
        before = origin.tip(target)
        files = {f"outside/{self._random.getrandbits(32)}": "1"}
        pushed = origin.branch(f"outside-{target}", upon=before, files=files)
        command = ["git", "--git-dir", origin.url, "update-ref", self._queue.evidence.target, pushed, before]
        subprocess.run(command, check=False, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
