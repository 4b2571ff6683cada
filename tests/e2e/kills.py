"""Kills the real server at random moments while people and a CI work with it, and holds it to its promises in the end.

    python -m tests.e2e.kills --kills 200 --seed 1

The seed chooses what people do and how long a server lives. Where exactly the kill hits, the machine decides.
"""

import argparse
import tempfile
from contextlib import suppress
from pathlib import Path
from random import Random
from subprocess import CalledProcessError
from threading import Timer
from typing import Any
from uuid import UUID

import httpx
from msgspec import Struct
from rich.progress import Progress

from tests.support.api import Refused
from tests.support.host_log import TARGET
from tests.support.premises import Premises
from tests.support.promises import broken_promises

KILLS_PER_WORLD = 12
LONGEST_LIFE = 1.2
"""Seconds between listening and the kill."""
MOST_AT_ONCE = 6
SETTINGS: tuple[dict[str, Any], ...] = (
    {"concurrency": 3},
    {"batch": True, "batchingMinSize": 3, "batchingMaxWaitTimeMinutes": 0, "mergeMethod": "squash"},
    {"mode": "parallel", "mergeMethod": "rebase"},
    {"canOptimisticallyMerge": True, "pendingFailureDepth": 1},
)


class Outcome(Struct):
    kills: int = 0
    decided: int = 0
    merged: int = 0
    landings: int = 0
    answers: int = 0

    def add(self, other: "Outcome") -> None:
        for field in self.__struct_fields__:
            setattr(self, field, getattr(self, field) + getattr(other, field))


class World:
    """Premises on which the server dies every so often, and people insist."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.kills = 0
        self.premises = Premises.prepared(folder)
        self._random = Random(seed)
        self._settings = SETTINGS[seed % len(SETTINGS)]
        self._live: list[int] = []
        self._killer: Timer | None = None
        self.premises.create_queue(**self._settings)

    def run(self, kills: int) -> Outcome:
        self._arm()
        while self.kills < kills:
            self._somebody_acts()
            self.premises.ci.work()
            if not self.premises.server.alive:
                self._rise()
        self._disarm()
        self._insist("updateQueue", state="RUNNING")
        self._give_up_whoever_cannot_become_ready()
        return self._judged()

    # The killer

    def _arm(self) -> None:
        self._killer = Timer(self._random.uniform(0, LONGEST_LIFE), self.premises.server.process.kill)
        self._killer.start()

    def _disarm(self) -> None:
        if self._killer:
            self._killer.cancel()
            self._killer.join()
        if not self.premises.server.alive:
            self.premises.server.start()

    def _rise(self) -> None:
        self.premises.server.process.wait()
        self.kills += 1
        self.premises.server.start()
        self._arm()

    # People

    def _insist(self, path: str, **members: Any) -> dict[str, Any] | None:
        """Asks again with the same key until there is an answer; None is a refusal."""
        key = str(UUID(int=self._random.getrandbits(128)))
        while True:
            try:
                return self.premises.api.post(path, key=key, **members)
            except httpx.TransportError:
                self._rise()
            except Refused:
                return None

    def _somebody_acts(self) -> None:
        act = self._random.choices(
            (self._open_and_submit, self._cancel, self._restart, self._push, self._pause_or_run, self._push_to_target),
            weights=(10, 2, 2, 1, 1, 1),
        )[0]
        act()

    def _open_and_submit(self) -> None:
        self._live = [number for number in self._live if self._is_live(number)]
        if len(self._live) >= MOST_AT_ONCE:
            return
        change = self._change()
        number = self.premises.open_pr(change)
        if self._settings.get("mode") == "parallel":
            targets = self._random.sample(("front", "back", "docs"), self._random.randint(1, 2))
            targets += [] if change.keys().isdisjoint(("left", "right")) else ["what breaks together"]
            self._insist("setImpactedTargets", pr={"number": number}, impactedTargets=targets)
        self._insist("submitPullRequest", pr={"number": number})
        self._live.append(number)

    def _change(self) -> dict[str, str]:
        unique = f"{self._random.getrandbits(32):08x}"
        match self._random.randrange(10):
            case 0:
                return {f"bad-{unique}": "1"}
            case 1:
                return {"README": unique}
            case 2:
                return {self._random.choice(("left", "right")): unique}
            case _:
                return {f"files/{unique}": "1"}

    def _is_live(self, number: int) -> bool:
        pull = self._insist("getSubmittedPullRequest", pr={"number": number})
        return pull is not None and pull["isCurrentlySubmittedToQueue"]

    def _cancel(self) -> None:
        self._to_one_of_them("cancelPullRequest")

    def _restart(self) -> None:
        self._to_one_of_them("restartTestsOnPullRequest")

    def _to_one_of_them(self, path: str) -> None:
        if self._live:
            self._insist(path, pr={"number": self._random.choice(self._live)})

    def _push(self) -> None:
        """And submits what was pushed."""
        if self._live:
            number = self._random.choice(self._live)
            if self.premises.meta(number)["state"] != "open":
                return
            branch = self.premises.meta(number)["branch"]
            self.premises.origin.commit(branch, {f"pushed/{self._random.getrandbits(32)}": "1"})
            self.premises.origin.set(f"refs/pull/{number}/head", self.premises.origin.tip(branch))

    def _pause_or_run(self) -> None:
        self._insist("updateQueue", state=self._random.choice(("PAUSED", "RUNNING", "RUNNING")))

    def _push_to_target(self) -> None:
        """Somebody may be quicker; then it is given up."""
        origin, before = self.premises.origin, self.premises.origin.tip("main")
        pushed = origin.branch("outside", upon=before, files={f"outside/{self._random.getrandbits(32)}": "1"})
        with suppress(CalledProcessError):
            origin.run("update-ref", TARGET, pushed, before)

    # The end

    def _give_up_whoever_cannot_become_ready(self) -> None:
        """Such as those that conflict with the target, or were pushed to and have no targets any more."""
        self.premises.eventually(lambda: {pull["state"] for pull in self._enqueued()} <= {"not_ready"}, seconds=120)
        for pull in self._enqueued():
            self._insist("cancelPullRequest", pr={"number": pull["prNumber"]})

    def _enqueued(self) -> list[dict[str, Any]]:
        return self.premises.api.post("getQueue")["enqueuedPullRequests"]

    def _judged(self) -> Outcome:
        """A push that outlived its server may bring a test branch when its run is over: a start sweeps it up."""
        premises = self.premises
        premises.server.stop()
        premises.server.start()
        premises.wait_for_cleanliness()
        premises.evidence.collect()
        broken = broken_promises(premises.evidence)
        assert not broken, "\n".join(broken)
        assert premises.ci.verdict(premises.origin.tip("main")) == "success"
        stays = premises.evidence.stays.values()
        return Outcome(
            kills=self.kills,
            decided=len(stays),
            merged=sum(stay["state"] == "merged" for stay in stays),
            landings=len(premises.evidence.landings),
            answers=len(premises.api.answers),
        )

    def close(self) -> None:
        self._disarm()
        self.premises.close()
        complaints = self.premises.server.complaints()
        assert not complaints, complaints


def campaign(kills: int, seed: int) -> Outcome:
    total = Outcome()
    with Progress() as progress:
        bar = progress.add_task(f"kills, seed {seed}", total=kills)
        while total.kills < kills:
            with tempfile.TemporaryDirectory(prefix="mergeyard-kills-") as folder:
                total.add(one_world(Path(folder), seed, min(KILLS_PER_WORLD, kills - total.kills)))
            seed += 1
            progress.update(bar, completed=total.kills, description=f"kills, seed {seed}")
    return total


def one_world(folder: Path, seed: int, kills: int) -> Outcome:
    world = World(folder, seed)
    try:
        return world.run(kills)
    finally:
        world.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    total = campaign(options.kills, options.seed)
    print(
        f"{total.kills} kills, {total.decided} submissions decided ({total.merged} merged), "
        f"{total.landings} landings checked, {total.answers} answers kept: every promise held."
    )


if __name__ == "__main__":
    main()
