"""Invariants of a queue, checked after every step."""

from typing import Any

from tests.fuzz.machine.client import Client
from tests.fuzz.machine.model import QueueModel, SubmissionModel

Response = dict[str, Any]


class InvariantChecker:
    def __init__(self, client: Client) -> None:
        self._client = client
        self.passed = set[str]()
        """Tips of runs for which all required checks were reported as passed."""

    def check(self, place: str, branch: str, model: QueueModel, take: int) -> None:
        if not model.exists:
            return
        queue = self._client.queue(place, branch)
        listed = self._listed(queue, take)
        assert [pull["id"] for pull in listed] == [submission.id for submission in reversed(model.submissions)]
        for pull, submission in zip(listed, reversed(model.submissions), strict=True):
            self._check_pull_request(queue, pull, submission)
        self._check_queue(queue, model)
        if model.paused_at is not None:
            assert self._client.repositories[place].tip(branch) == model.paused_at, (
                "the target branch moved while the queue was paused"
            )

    def _listed(self, queue: Response, take: int) -> list[Response]:
        """All pages."""
        listed, more = list[Response](), dict[str, str]()
        while True:
            page = self._client.read("listPullRequests", queue | {"take": take} | more)
            listed += page["pullRequests"]
            if "nextCursor" not in page:
                return listed
            assert len(page["pullRequests"]) == take
            more = {"cursor": page["nextCursor"]}

    def _check_pull_request(self, queue: Response, pull: Response, submission: SubmissionModel) -> None:
        """The final state never changes, a cancelled pull request never lands, and nothing lands untested."""
        assert pull["prNumber"] == submission.number
        assert not submission.ended or (pull["state"], pull["mergedSha"]) == (submission.state, submission.merged_sha)
        assert not submission.cancelled or pull["state"] == "cancelled"
        assert pull["isCurrentlySubmittedToQueue"] == (pull["state"] not in ("merged", "failed", "cancelled"))
        assert (pull["state"] == "merged") == (pull["mergedSha"] is not None)
        if pull["state"] == "merged" and submission.state != "merged":
            run = self._client.read("getMergeQueueTestingDetails", queue | {"testRunId": pull["verifiedByTestRun"]})
            assert run["status"] == "succeeded"
            assert run["testBranchSha"] in self.passed, "it merged without a reported success"
        submission.state, submission.merged_sha = pull["state"], pull["mergedSha"]

    def _check_queue(self, queue: Response, model: QueueModel) -> None:
        shown = self._client.read("getQueue", queue)
        settings = {name: shown[name] for name in model.settings if name != "state"}
        assert settings == {name: value for name, value in model.settings.items() if name != "state"}
        assert shown["state"] in (model.settings.get("state", "RUNNING"), "SWITCHING_MODES")
        enqueued = shown["enqueuedPullRequests"]
        assert {pull["id"] for pull in enqueued} == {
            submission.id for submission in model.submissions if not submission.ended
        }
        positions = [pull["position"] for pull in enqueued if pull["position"] is not None]
        assert positions == list(range(1, len(positions) + 1))
