"""A walk through every state that the document names; whatever is answered on the way is kept to be looked at."""

from typing import Any

from msgspec import Struct, field

from tests.contract.api.desk import Desk

Answers = list[dict[str, Any]]


class Tour(Struct):
    pulls: Answers = field(default_factory=Answers)
    """As `getSubmittedPullRequest` answers."""
    runs: Answers = field(default_factory=Answers)
    queues: Answers = field(default_factory=Answers)
    contents: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Of all answers, by path: the content type and the first character."""


class Guide:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.tour = Tour()

    async def look_at(self, *numbers: int) -> None:
        for number in numbers:
            pull = await self.desk.pull(number)
            self.tour.pulls.append(pull)
            if pull["testRunId"] is not None:
                self.tour.runs.append(await self.desk.run(number))

    async def look_at_queue(self) -> None:
        self.tour.queues.append(await self.desk.ask("getQueue"))


async def a_tour(desk: Desk) -> Tour:
    guide = Guide(desk)
    await _along_the_line(guide)
    await _through_the_states_of_a_queue(guide)
    await _into_parallel_mode(guide)
    await guide.look_at(*range(1, 9))
    await desk.metrics()
    for answer in desk.answers:
        kept = guide.tour.contents.setdefault(answer.request.url.path, [])
        kept.append(f"{answer.headers['content-type']} {answer.text[:1]}")
    return guide.tour


async def _along_the_line(guide: Guide) -> None:
    """One merges, one fails behind it, one that stood upon the failed one is taken out."""
    desk = guide.desk
    desk.world.open(1, 2, 3, 4)
    desk.world.set_pull(4, draft=True)
    await desk.submit(1, 2, 3, 4)
    await guide.look_at(1, 2, 3, 4)
    await desk.fails(2)
    await desk.passes(3)
    await guide.look_at(2, 3)
    await desk.passes(1)
    await guide.look_at(1, 2, 3)
    await desk.ask("restartTestsOnPullRequest", pr={"number": 3})
    await desk.ask("cancelPullRequest", pr={"number": 3})
    await guide.look_at(3)


async def _through_the_states_of_a_queue(guide: Guide) -> None:
    desk = guide.desk
    desk.world.open(5, 6)
    await desk.ask("updateQueue", concurrency=1, requiredStatuses=["unit", "lint"])
    await desk.submit(5, 6, priority=33)
    await guide.look_at(5, 6)
    await guide.look_at_queue()
    for state in ("PAUSED", "DRAINING", "RUNNING"):
        await desk.ask("updateQueue", state=state)
        await guide.look_at_queue()


async def _into_parallel_mode(guide: Guide) -> None:
    """What is under test comes to its end first."""
    desk = guide.desk
    desk.world.open(7, 8)
    await desk.ask("updateQueue", mode="parallel", concurrency=5)
    await guide.look_at_queue()
    await desk.submit(7, 8)
    for number, targets in ((7, ["//app", "//lib"]), (8, ["//lib"])):
        await desk.ask("setImpactedTargets", pr={"number": number}, impactedTargets=targets)
    await guide.look_at(5, 6, 7, 8)
    for check in ("unit", "lint"):
        await desk.passes(5, context=check, url="https://ci.example/1")
    await guide.look_at(5, 6, 7, 8)
    await desk.ask("cancelPullRequest", pr={"number": 6})
    await guide.look_at(6, 7, 8)
