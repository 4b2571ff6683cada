"""What must be true of a queue after every step, whatever was done."""

from typing import Any

from tests.fuzz.machine.client import Client
from tests.fuzz.machine.model import QueueModel, Stay

Answer = dict[str, Any]


class Watcher:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.green = set[str]()
        """Tips of runs on which all that is required was reported to have passed."""

    def watch(self, place: str, branch: str, model: QueueModel, take: int) -> None:
        if not model.exists:
            return
        queue = self._client.queue(place, branch)
        listed = self._listed(queue, take)
        assert [pull["id"] for pull in listed] == [stay.id for stay in reversed(model.stays)]
        for pull, stay in zip(listed, reversed(model.stays), strict=True):
            self._follow(queue, pull, stay)
        self._watch_line(queue, model)
        if model.resting_at is not None:
            assert self._client.places[place].tip(branch) == model.resting_at, "it landed in spite of the pause"

    def _listed(self, queue: Answer, take: int) -> list[Answer]:
        """Page by page."""
        listed, more = list[Answer](), dict[str, str]()
        while True:
            page = self._client.read("listPullRequests", queue | {"take": take} | more)
            listed += page["pullRequests"]
            if "nextCursor" not in page:
                return listed
            assert len(page["pullRequests"]) == take
            more = {"cursor": page["nextCursor"]}

    def _follow(self, queue: Answer, pull: Answer, stay: Stay) -> None:
        """The end is final, what was cancelled never lands, and nothing lands untested."""
        assert pull["prNumber"] == stay.number
        assert not stay.ended or (pull["state"], pull["mergedSha"]) == (stay.state, stay.merged_sha)
        assert not stay.cancelled or pull["state"] == "cancelled"
        assert pull["isCurrentlySubmittedToQueue"] == (pull["state"] not in ("merged", "failed", "cancelled"))
        assert (pull["state"] == "merged") == (pull["mergedSha"] is not None)
        if pull["state"] == "merged" and stay.state != "merged":
            run = self._client.read("getMergeQueueTestingDetails", queue | {"testRunId": pull["verifiedByTestRun"]})
            assert run["status"] == "succeeded"
            assert run["testBranchSha"] in self.green, "nobody said that it passed"
        stay.state, stay.merged_sha = pull["state"], pull["mergedSha"]

    def _watch_line(self, queue: Answer, model: QueueModel) -> None:
        shown = self._client.read("getQueue", queue)
        told = {name: shown[name] for name in model.settings if name != "state"}
        assert told == {name: value for name, value in model.settings.items() if name != "state"}
        assert shown["state"] in (model.settings.get("state", "RUNNING"), "SWITCHING_MODES")
        enqueued = shown["enqueuedPullRequests"]
        assert {pull["id"] for pull in enqueued} == {stay.id for stay in model.stays if not stay.ended}
        positions = [pull["position"] for pull in enqueued if pull["position"] is not None]
        assert positions == list(range(1, len(positions) + 1))
