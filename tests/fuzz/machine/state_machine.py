"""A state machine over the HTTP API: every rule sends a request, and knows which response it must get."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import Struct

from tests.fuzz.machine.client import Client
from tests.fuzz.machine.environment import (
    BRANCHES,
    PULL_REQUEST_NUMBERS,
    FuzzEnvironment,
    a_fuzz_environment,
    write_pull_request,
)
from tests.fuzz.machine.invariants import InvariantChecker
from tests.fuzz.machine.model import USERS, PullRequestModel, QueueModel, SubmissionModel, expected_refusal
from tests.fuzz.properties import fuzz_settings
from tests.support.scenario import MINUTE, SECOND

people = st.sampled_from(["operator"] * 12 + list(USERS))
places = st.sampled_from(["here"] * 6 + ["there"])
branches = st.sampled_from(["main"] * 6 + ["release"])
numbers = st.sampled_from([*PULL_REQUEST_NUMBERS, *PULL_REQUEST_NUMBERS, 99])
several = st.lists(st.sampled_from(list(PULL_REQUEST_NUMBERS)), unique=True, max_size=4)
keyed = st.booleans()
settings = st.fixed_dictionaries(
    {},
    optional={
        "concurrency": st.integers(1, 4),
        "batch": st.booleans(),
        "batchingMinSize": st.integers(1, 3),
        "mode": st.sampled_from(["single", "parallel"]),
        "mergeMethod": st.sampled_from(["merge_commit", "squash", "rebase"]),
        "canOptimisticallyMerge": st.booleans(),
        "pendingFailureDepth": st.integers(0, 2),
        "testRetries": st.integers(0, 1),
        "requiredStatuses": st.sampled_from([["unit"], None]),
    },
)
submit_options = st.fixed_dictionaries(
    {}, optional={"priority": st.sampled_from([0, 10, 33, "low", "URGENT"]), "noBatch": st.booleans()}
)
INVALID: list[dict[str, Any]] = [
    {"concurrency": 0},
    {"concurency": 3},
    {"mode": "fast"},
    {"batch": None},
    {"requiredStatuses": []},
    {"state": "GONE"},
]
targets = st.lists(st.sampled_from(["//a", "//b", "//c"]), max_size=3) | st.just("ALL")


class ApiStateMachine(RuleBasedStateMachine):
    environment: FuzzEnvironment

    def __init__(self) -> None:
        super().__init__()
        self.client = Client(self.environment)
        self.checker = InvariantChecker(self.client)
        self.queues = {(place, branch): QueueModel() for place in self.client.repositories for branch in BRANCHES}
        self.pull_requests = {
            (name, number): PullRequestModel(place.origin.tip(f"topic{number}"))
            for name, place in self.client.repositories.items()
            for number in PULL_REQUEST_NUMBERS
        }

    # Queues

    @initialize(given=settings, submitted=several)
    def begin(self, given: dict[str, Any], submitted: list[int]) -> None:
        """Most examples are about one queue, and start with some submissions in it."""
        self.create("here", "main", given, "operator", keyed=True)
        self.submit_several(submitted, {})

    @rule(place=places, branch=branches, given=settings, who=people, keyed=keyed)
    def create(self, place: str, branch: str, given: dict[str, Any], who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        response = self.client.post(who, "createQueue", self.client.queue(place, branch) | given, keyed=keyed)
        expected = expected_refusal(USERS[who], "createQueue", place) or (
            "queue_already_exists" if queue.exists else None
        )
        if self._matches(response, expected):
            queue.exists, queue.settings = True, dict(given)

    @rule(place=places, branch=branches, given=settings, who=people, keyed=keyed)
    def update(self, place: str, branch: str, given: dict[str, Any], who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        response = self.client.post(who, "updateQueue", self.client.queue(place, branch) | given, keyed=keyed)
        if response == "mode_switch_in_progress":
            assert given.get("mode") != queue.settings.get("mode", "single")
        elif self._matches(response, self._missing(who, "updateQueue", place, branch)):
            queue.settings |= given

    @rule(place=places, branch=branches, state=st.sampled_from(["RUNNING", "PAUSED", "DRAINING"]), keyed=keyed)
    def change_state(self, place: str, branch: str, state: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        response = self.client.post(
            "operator", "updateQueue", self.client.queue(place, branch) | {"state": state}, keyed=keyed
        )
        if self._matches(response, self._missing("operator", "updateQueue", place, branch)):
            queue.settings["state"] = state
            queue.paused_at = self.client.repositories[place].tip(branch) if state == "PAUSED" else None

    @rule(place=places, branch=branches, given=settings, bad=st.sampled_from(INVALID))
    def update_with_invalid_settings(self, place: str, branch: str, given: dict[str, Any], bad: dict[str, Any]) -> None:
        response = self.client.post("operator", "updateQueue", self.client.queue(place, branch) | given | bad)
        assert response in ("invalid_request", "unknown_field")

    @rule(place=places, branch=branches, who=people, keyed=keyed)
    def delete(self, place: str, branch: str, who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        response = self.client.post(who, "deleteQueue", self.client.queue(place, branch), keyed=keyed)
        full = any(not submission.ended for submission in queue.submissions)
        if self._matches(
            response, self._missing(who, "deleteQueue", place, branch) or ("queue_not_empty" if full else None)
        ):
            queue.forget()

    # Pull requests

    @rule(place=places, branch=branches, number=numbers, options=submit_options, who=people, keyed=keyed)
    def submit(self, place: str, branch: str, number: int, options: dict[str, Any], who: str, keyed: bool) -> None:
        queue, pull = self.queues[place, branch], self.pull_requests.get((place, number))
        body = self.client.queue(place, branch) | {"pr": {"number": number}} | options
        response = self.client.post(who, "submitPullRequest", body, keyed=keyed)
        expected = self._missing(who, "submitPullRequest", place, branch, options) or (None if pull else "pr_not_found")
        active = queue.active(number)
        if expected is None and pull is not None and pull.state == "closed":
            assert response == "pr_closed" or (active is not None and isinstance(response, dict))
            return
        if expected is None and response == "pr_already_merged":
            assert any(submission.state == "merged" for each in self.queues.values() for submission in each.submissions)
            return
        if self._matches(response, expected) and isinstance(response, dict):
            assert pull is not None
            assert response["prSha"] == pull.head
            if active is None or (pull.touched and response["id"] != active.id):
                assert response["id"] not in {submission.id for submission in queue.submissions}
                queue.submissions.append(SubmissionModel(response["id"], number))
            assert response["id"] == queue.submissions[-1].id or (active is not None and response["id"] == active.id)

    @rule(several=several, options=submit_options)
    def submit_several(self, several: list[int], options: dict[str, Any]) -> None:
        for number in several:
            self.submit("here", "main", number, options, "operator", keyed=False)
            self.every_queue_matches_its_model()

    @rule(place=places, branch=branches, number=numbers, sha=st.sampled_from(["0" * 40, "F" * 64]))
    def submit_another_head(self, place: str, branch: str, number: int, sha: str) -> None:
        body = self.client.queue(place, branch) | {"pr": {"number": number, "sha": sha}}
        response = self.client.post("operator", "submitPullRequest", body)
        missing = self._missing("operator", "submitPullRequest", place, branch)
        assert response == (missing or ("sha_mismatch" if number in PULL_REQUEST_NUMBERS else "pr_not_found"))

    @rule(place=places, branch=branches, number=numbers, who=people, keyed=keyed)
    def cancel(self, place: str, branch: str, number: int, who: str, keyed: bool) -> None:
        queue = self.queues[place, branch]
        submission = queue.last(number)
        response = self.client.post(
            who, "cancelPullRequest", self.client.queue(place, branch) | {"pr": {"number": number}}, keyed=keyed
        )
        expected = self._missing(who, "cancelPullRequest", place, branch)
        if expected is None and submission is None:
            expected = "pr_not_submitted"
        elif expected is None and submission is not None and submission.state in ("merged", "failed"):
            expected = "pr_not_in_queue"
        if self._matches(response, expected) and isinstance(response, dict):
            assert submission is not None
            assert (response["id"], response["state"]) == (submission.id, "cancelled")
            submission.cancelled = True

    @rule(place=places, branch=branches, number=numbers, who=people, keyed=keyed)
    def restart(self, place: str, branch: str, number: int, who: str, keyed: bool) -> None:
        submission = self.queues[place, branch].last(number)
        body = self.client.queue(place, branch) | {"pr": {"number": number}}
        response = self.client.post(who, "restartTestsOnPullRequest", body, keyed=keyed)
        expected = self._missing(who, "restartTestsOnPullRequest", place, branch)
        if expected is None and submission is None:
            expected = "pr_not_submitted"
        elif expected is None and submission is not None and submission.state in ("merged", "failed", "cancelled"):
            expected = "pr_not_in_queue"
        self._matches(response, expected)

    @rule(place=places, branch=branches, number=numbers, given=targets, who=people, keyed=keyed)
    def set_targets(self, place: str, branch: str, number: int, given: Any, who: str, keyed: bool) -> None:
        body = self.client.queue(place, branch) | {"pr": {"number": number}, "impactedTargets": given}
        response = self.client.post(who, "setImpactedTargets", body, keyed=keyed)
        expected = self._missing(who, "setImpactedTargets", place, branch)
        if self._matches(
            response, expected or (None if number in PULL_REQUEST_NUMBERS else "pr_not_found")
        ) and isinstance(response, dict):
            assert response["impactedTargets"] == ("ALL" if given == "ALL" else len(set(given)))

    # CI, and changes on the Git host

    @rule(place=places, branch=branches, verdicts=st.lists(st.sampled_from(["success"] * 3 + ["failure"]), max_size=4))
    def report(self, place: str, branch: str, verdicts: list[str]) -> None:
        """One verdict for each run of the queue now; not for the runs that follow from it."""
        queue = self.client.queue(place, branch)
        for run_id, verdict in zip(self._runs(place, branch), verdicts, strict=False):
            run = self.client.read("getMergeQueueTestingDetails", queue | {"testRunId": run_id})
            body = {"repo": queue["repo"], "sha": run["testBranchSha"], "context": "unit", "state": verdict}
            if verdict == "success":
                self.checker.passed.add(run["testBranchSha"])
            assert self.client.post("ci", "reportCommitStatus", body) == {"accepted": True}

    @rule(place=places, sha=st.sampled_from(["1" * 40, "a" * 64]), who=people)
    def report_unknown_commit(self, place: str, sha: str, who: str) -> None:
        body = {"repo": self.client.repositories[place].reference, "sha": sha, "context": "unit", "state": "success"}
        response = self.client.post(who, "reportCommitStatus", body)
        self._matches(response, expected_refusal(USERS[who], "reportCommitStatus", place))

    @rule(
        place=places,
        number=st.sampled_from(list(PULL_REQUEST_NUMBERS)),
        how=st.sampled_from(["push", "draft", "close", "open"]),
    )
    def change_on_host(self, place: str, number: int, how: str) -> None:
        origin, pull = self.client.repositories[place].origin, self.pull_requests[place, number]
        if how == "push":
            pull.head = origin.commit(f"topic{number}", {f"file{number}": f"{pull.head}\n"})
        pull.draft = how == "draft" or (pull.draft and how != "open")
        pull.state = {"close": "closed", "open": "open"}.get(how, pull.state)
        pull.touched = True
        write_pull_request(origin, number, draft=pull.draft, state=pull.state)

    @rule(span=st.sampled_from([SECOND, SECOND, 10 * MINUTE, 6 * 60 * MINUTE]))
    def time_passes(self, span: int) -> None:
        self.environment.advance_time(span)
        for pull in self.pull_requests.values():
            pull.touched = False

    # Repeated requests, and what other tokens must not see

    @precondition(lambda self: self.client.recorded)
    @rule(at=st.integers(0, 100))
    def ask_again(self, at: int) -> None:
        self.client.repeat(self.client.recorded[at % len(self.client.recorded)])

    @rule(
        branch=branches, endpoint=st.sampled_from(["getQueue", "deleteQueue", "listPullRequests", "submitPullRequest"])
    )
    def read_without_access(self, branch: str, endpoint: str) -> None:
        self.client.assert_looks_missing(
            "here", branch, endpoint, {"pr": {"number": 1}} if "submit" in endpoint else {}
        )

    @rule(who=st.sampled_from(list(USERS)))
    def list_queues(self, who: str) -> None:
        response = self.client.post(who, "listQueues", {})
        person = USERS[who]
        if not self._matches(
            response, expected_refusal(person, "listQueues", person.repository or "here")
        ) or isinstance(response, str):
            return
        names = {place.name: at for at, place in self.client.repositories.items()}
        listed = {
            (names[queue["repo"]["name"]], queue["branch"])
            for queue in response["queues"]
            if queue["repo"]["name"] in names
        }
        assert listed == {
            at for at, queue in self.queues.items() if queue.exists and person.repository in (None, at[0])
        }

    @invariant()
    def every_queue_matches_its_model(self) -> None:
        for (place, branch), queue in self.queues.items():
            self.checker.check(place, branch, queue, take=2)

    def teardown(self) -> None:
        """Cancels all submissions, then deletes the queues."""
        for (place, branch), queue in self.queues.items():
            for submission in [submission for submission in queue.submissions if not submission.ended]:
                body = self.client.queue(place, branch) | {"pr": {"number": submission.number}}
                self.client.post("operator", "cancelPullRequest", body)
            if queue.exists:
                response = self.client.post("operator", "deleteQueue", self.client.queue(place, branch))
                assert isinstance(response, dict), response

    def _matches(self, response: dict[str, Any] | str, expected: str | None) -> bool:
        """Whether the request was accepted; a refusal must be the expected one."""
        assert expected == (response if isinstance(response, str) else None), response
        return expected is None

    def _missing(
        self, who: str, endpoint: str, place: str, branch: str, options: dict[str, Any] | None = None
    ) -> str | None:
        exists = self.queues[place, branch].exists
        return expected_refusal(USERS[who], endpoint, place, options) or (None if exists else "queue_not_found")

    def _runs(self, place: str, branch: str) -> list[str]:
        """The runs of all pull requests that are being tested."""
        if not self.queues[place, branch].exists:
            return []
        shown = self.client.read("getQueue", self.client.queue(place, branch))
        found = (pull["testRunId"] for pull in shown["enqueuedPullRequests"] if pull["state"] in ("testing", "pending"))
        return list(dict.fromkeys(run for run in found if run))


STEPS = 25
"""Maximum length of an example."""


class RunCounts(Struct):
    clients: int = 0
    requests: int = 0

    def __str__(self) -> str:
        return f"{self.clients} clients with {self.requests:,} requests"


def run_clients(
    store: str,
    clients: int,
    seed: int,
    counts: RunCounts,
    on_progress: Callable[[], object] = lambda: None,
    *,
    steps: int = STEPS,
) -> None:
    with TemporaryDirectory() as folder, a_fuzz_environment(store, Path(folder)) as there:

        class CountedStateMachine(ApiStateMachine):
            environment = there

            def teardown(self) -> None:
                super().teardown()
                counts.clients += 1
                counts.requests += self.client.request_count
                on_progress()

        hypothesis.seed(seed)(CountedStateMachine)
        run_state_machine_as_test(CountedStateMachine, settings=fuzz_settings(clients, steps=steps))
