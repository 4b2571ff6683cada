"""A walkthrough of every state that `spec/api.md` names; it records all responses."""

from typing import Any

from msgspec import Struct, field

from tests.contract.api.harness import ApiHarness

Answers = list[dict[str, Any]]


class Walkthrough(Struct):
    pull_requests: Answers = field(default_factory=Answers)
    """Responses of `getSubmittedPullRequest`."""
    runs: Answers = field(default_factory=Answers)
    queues: Answers = field(default_factory=Answers)
    content_by_path: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Content type and first character of all responses, by path."""


class Recorder:
    def __init__(self, api: ApiHarness) -> None:
        self.api = api
        self.tour = Walkthrough()

    async def record(self, *numbers: int) -> None:
        for number in numbers:
            pull_request = await self.api.pull_request(number)
            self.tour.pull_requests.append(pull_request)
            if pull_request["testRunId"] is not None:
                self.tour.runs.append(await self.api.run(number))

    async def record_queue(self) -> None:
        self.tour.queues.append(await self.api.ask("getQueue"))


async def record_walkthrough(api: ApiHarness) -> Walkthrough:
    recorder = Recorder(api)
    await _merge_and_fail(recorder)
    await _change_queue_states(recorder)
    await _switch_to_parallel_mode(recorder)
    await recorder.record(*range(1, 9))
    await api.metrics()
    for answer in api.responses:
        contents = recorder.tour.content_by_path.setdefault(answer.request.url.path, [])
        contents.append(f"{answer.headers['content-type']} {answer.text[:1]}")
    return recorder.tour


async def _merge_and_fail(recorder: Recorder) -> None:
    """One pull request merges, one fails behind it, and one that was tested on top of the failed one is removed."""
    api = recorder.api
    api.world.open(1, 2, 3, 4)
    api.world.set_pull_request(4, draft=True)
    await api.submit(1, 2, 3, 4)
    await recorder.record(1, 2, 3, 4)
    await api.fails(2)
    await api.passes(3)
    await recorder.record(2, 3)
    await api.passes(1)
    await recorder.record(1, 2, 3)
    await api.ask("restartTestsOnPullRequest", pr={"number": 3})
    await api.ask("cancelPullRequest", pr={"number": 3})
    await recorder.record(3)


async def _change_queue_states(recorder: Recorder) -> None:
    api = recorder.api
    api.world.open(5, 6)
    await api.ask("updateQueue", concurrency=1, requiredStatuses=["unit", "lint"])
    await api.submit(5, 6, priority=33)
    await recorder.record(5, 6)
    await recorder.record_queue()
    for state in ("PAUSED", "DRAINING", "RUNNING"):
        await api.ask("updateQueue", state=state)
        await recorder.record_queue()


async def _switch_to_parallel_mode(recorder: Recorder) -> None:
    """The mode switch waits until running tests have ended."""
    api = recorder.api
    api.world.open(7, 8)
    await api.ask("updateQueue", mode="parallel", concurrency=5)
    await recorder.record_queue()
    await api.submit(7, 8)
    for number, targets in ((7, ["//app", "//lib"]), (8, ["//lib"])):
        await api.ask("setImpactedTargets", pr={"number": number}, impactedTargets=targets)
    await recorder.record(5, 6, 7, 8)
    for check in ("unit", "lint"):
        await api.passes(5, context=check, url="https://ci.example/1")
    await recorder.record(5, 6, 7, 8)
    await api.ask("cancelPullRequest", pr={"number": 6})
    await recorder.record(6, 7, 8)
