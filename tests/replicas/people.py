"""Random actions of the people and the CI of one queue while replicas fail; they retry until they get a response."""

import subprocess
from random import Random
from threading import Event
from typing import Any

from tests.support.api_client import ApiRefused
from tests.support.environment import QueueEnvironment
from tests.support.repositories import ENVIRONMENT

MAX_CONCURRENT_PRS = 4
SECONDS_BETWEEN_ACTS = 0.05
LANES: tuple[str, ...] = ("front", "back", "docs")
FAILING_TOGETHER = ("left", "right")


class People:
    def __init__(self, queue: QueueEnvironment, random: Random) -> None:
        self._queue = queue
        self._random = random
        self._parallel = queue.api.post("getQueue")["mode"] == "parallel"
        self._live: list[int] = []

    def act_until(self, stop: Event) -> None:
        while not stop.wait(SECONDS_BETWEEN_ACTS):
            self._act()
            self._queue.ci.report_new_branches()

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
        """None if the request was refused."""
        try:
            return self._queue.api.post(path, **members)
        except ApiRefused as refused:
            if refused.status >= 500:
                raise
            return None

    def _open_and_submit(self) -> None:
        self._live = [number for number in self._live if self._is_live(number)]
        if len(self._live) >= MAX_CONCURRENT_PRS:
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
                return {self._random.choice(FAILING_TOGETHER): unique}
            case _:
                return {f"files/{unique}": "1"}

    def _lanes_of(self, change: dict[str, str]) -> list[str]:
        lanes = self._random.sample(LANES, self._random.randint(1, 2))
        return lanes if change.keys().isdisjoint(FAILING_TOGETHER) else [*lanes, "fails-together"]

    def _is_live(self, number: int) -> bool:
        pull_request = self._ask("getSubmittedPullRequest", pr={"number": number})
        return pull_request is not None and pull_request["isCurrentlySubmittedToQueue"]

    def _cancel(self) -> None:
        self._ask_for_one("cancelPullRequest")

    def _restart(self) -> None:
        self._ask_for_one("restartTestsOnPullRequest")

    def _ask_for_one(self, path: str) -> None:
        if self._live:
            self._ask(path, pr={"number": self._random.choice(self._live)})

    def _push(self) -> None:
        if not self._live:
            return
        number, origin = self._random.choice(self._live), self._queue.origin
        meta = self._queue.pull_request_meta(number)
        if meta["state"] == "open":
            origin.commit(meta["branch"], {f"pushed/{self._random.getrandbits(32)}": "1"})
            origin.set_ref(f"refs/pull/{number}/head", origin.tip(meta["branch"]))

    def _pause_or_run(self) -> None:
        self._ask("updateQueue", state=self._random.choice(("PAUSED", "RUNNING", "RUNNING")))

    def _push_to_target(self) -> None:
        """Given up if the branch has moved meanwhile."""
        origin, target = self._queue.origin, self._queue.target_branch
        before = origin.tip(target)
        files = {f"outside/{self._random.getrandbits(32)}": "1"}
        pushed = origin.branch(f"outside-{target}", base=before, files=files)
        command = ["git", "--git-dir", origin.url, "update-ref", self._queue.evidence.target_ref, pushed, before]
        subprocess.run(command, check=False, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
