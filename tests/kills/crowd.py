"""What people do while servers die: all that `People` do, and rather what brings a server to where it shall die."""

from collections.abc import Callable, Collection, Mapping
from random import Random

from tests.replicas.people import People
from tests.support.surroundings import Surroundings

Deeds = Mapping[Callable[[], None], Collection[str]]
"""What somebody may do, and which effects that has, sooner or later."""

MORE_OR_LESS_URGENT = range(20, 90)
"""Priorities that nobody has who asked for none."""
UNKNOWN = 999_999
"""The number of a pull request that nobody opened."""


class Crowd(People):
    def __init__(self, queue: Surroundings, random: Random) -> None:
        super().__init__(queue, random)
        self._priorities = random.sample(MORE_OR_LESS_URGENT, len(MORE_OR_LESS_URGENT))
        self._deeds: dict[Callable[[], None], Collection[str]] = {
            self._prioritise: ("answer:submitPullRequest",),
            self._say_what_is_impacted: ("answer:setImpactedTargets", "store.commit:targets"),
            self._cancel: ("answer:cancelPullRequest", "git.push:branch_deleted", "store.commit:run_let_go"),
            self._restart: ("answer:restartTestsOnPullRequest", "git.push:branch_deleted", "check.stop"),
            self._pause_or_run: ("answer:updateQueue",),
            self._ask_for_nonsense: ("answer:refusal",),
        }
        if queue.api.post("getQueue")["directMergeMode"] != "off":
            self._deeds[self._prepare_a_direct_merge] = ("git.push:direct_landing",)

    def also(self, deeds: Deeds) -> None:
        self._deeds |= deeds

    def act_towards(self, effects: Collection[str]) -> None:
        """One of them does something, and then the CI."""
        leading = [deed for deed, follows in self._deeds.items() if not set(follows).isdisjoint(effects)]
        if leading and self._random.random() < 0.7:
            self._random.choice(leading)()
        elif self._random.random() < 0.8:
            self._act()
        else:
            self._random.choice(list(self._deeds))()
        self._queue.ci.work()

    def _prioritise(self) -> None:
        """Never two alike, so that nobody can say who of them should have been first."""
        if self._live and self._priorities:
            number, priority = self._random.choice(self._live), self._priorities.pop()
            self._ask("submitPullRequest", pr={"number": number}, priority=priority)

    def _say_what_is_impacted(self) -> None:
        if self._live and not self._parallel:
            self._ask("setImpactedTargets", pr={"number": self._random.choice(self._live)}, impactedTargets=["front"])

    def _ask_for_nonsense(self) -> None:
        self._ask("cancelPullRequest", pr={"number": UNKNOWN})

    def _prepare_a_direct_merge(self) -> None:
        """The CI passes a head that stands on the target, before it is submitted; nobody else may be there."""
        while self._live:
            self._ask("cancelPullRequest", pr={"number": self._live.pop()})
        number = self._queue.open_pr({f"files/{self._random.getrandbits(32):08x}": "1"})
        self._queue.ci.report(self._queue.origin.tip(f"refs/pull/{number}/head"), "success")
        self._ask("submitPullRequest", pr={"number": number})
        self._live.append(number)
