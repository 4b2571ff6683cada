"""The place where a story runs: a repository at a Git host, and a real Mergeyard server process that polls it."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from msgspec import Struct

from mergeyard.service.comments.texts import COMMENT_MARKER
from tests.live.client import BudgetSpent, NotRun, Reply
from tests.live.hosts import ADMIN, LiveHost
from tests.live.shapes import read_shapes
from tests.live.webhooks import WebhookRecorder
from tests.support.queue_server import QueueServer
from tests.support.repositories import Files

Found = TypeVar("Found")


class Observation(Struct, frozen=True, kw_only=True):
    """One answer of a Git host, in words that do not depend on the run."""

    name: str
    asked: str
    answer: Any
    matters: str = ""
    """Why another answer of the fake would matter; empty if it would not."""
    is_shape: bool = False
    """The types of members: the fake must not have others than the Git host, but can have fewer."""
    is_measured: bool = False
    """A figure, such as a number of seconds: it is shown and not compared."""
    expected: str = ""
    """What Mergeyard relies on, if the documents of the Git host do not say it."""
    holds: bool | None = None
    """Whether the answer is as expected."""
    not_measured: str = ""
    """Why there is no answer."""
    note: str = ""
    """What a reader has to know about the answer."""


class StepResult(Struct, frozen=True, kw_only=True):
    title: str
    observations: list[Observation]
    not_measured: str = ""
    """Why the step did not run, or not to its end."""
    failed: str = ""
    """What went wrong."""
    seconds: float = 0.0


class Waits(Struct, frozen=True):
    """The limits of all waits, for a host on this machine or for a public one."""

    limit_s: float
    settle_pause_s: float
    poll_s: int


LOCAL = Waits(60, 0.1, 1)
PUBLIC = Waits(90, 2, 5)
SETTLE_READS = 10
UNFINISHED = ("pending", "running")
SETTINGS: dict[str, Any] = {
    "state": "RUNNING",
    "landing": "tested_commit",
    "mergeMethod": "merge_commit",
    "headBranchFallback": "provider_merge",
    "createPrsForTestingBranches": False,
    "deleteHeadBranches": False,
}
"""The settings that steps change, as every step expects them."""


class Stage:
    def __init__(
        self, host: LiveHost, queue: QueueServer, waits: Waits, run_id: str, webhooks: WebhookRecorder | None = None
    ) -> None:
        self.host, self.queue, self.waits, self.run_id = host, queue, waits, run_id
        self.webhooks = webhooks
        """None: the Git host cannot reach this machine, and Mergeyard polls."""
        self.remaining_at_start = host.read_remaining()
        self._results: dict[int, tuple[str, str, str]] = {}
        """By pull request: the last test run that CI reported on, the state, and the account that reported it."""

    # Actions

    def open(self, topic: str, files: Files | None = None, *, is_approved: bool = True) -> int:
        """Opens a pull request with one commit. CI passes on its head, and the second account approves it, if there is
        one; unless it must stay without."""
        branch, content = self.branch(topic), {f"{topic}.txt": self.run_id}
        head = self.host.commit(branch, files or content, base="start")
        number = self.host.number_of(self.host.open(branch, f"Change {topic}"))
        if is_approved:
            self.host.report(head, "success").must_succeed()
            if self.host.can_require_approvals:
                self.host.approve(number).must_succeed()
        return number

    def branch(self, topic: str) -> str:
        return f"kit-{self.run_id}-{topic}"

    def read_settled(self, number: int, who: str = ADMIN) -> Reply:
        """Reads the pull request until the Git host has determined whether it merges."""
        reply = self.host.read(number, who).must_succeed()
        for _ in range(SETTLE_READS):
            if self.host.is_settled(reply):
                break
            self.host.budget.wait(self.waits.settle_pause_s)
            reply = self.host.read(number, who).must_succeed()
        return reply

    def submit(self, number: int, head: str = "") -> None:
        """A pull request of a fork is submitted with the head that was reviewed."""
        self.queue.post("submitPullRequest", pr={"number": number, **({"sha": head} if head else {})})

    def find_run(self, number: int) -> dict[str, Any]:
        """The test run of the pull request, as soon as its test branch is pushed."""
        self.wait_for_state(number, "testing", "tests_passed")
        run = self.queue.submission(number)["testRunId"]

        def read() -> dict[str, Any]:
            return self.queue.post("getMergeQueueTestingDetails", testRunId=run)

        self.wait(lambda: read()["testBranchSha"], "the test branch")
        return read()

    def test(self, number: int, *states: str, who: str = ADMIN) -> Reply:
        """CI reports these states of the check for the test branch. Returns the last answer."""
        run, states = self.find_run(number), states or ("success",)
        replies = [self.host.report(run["testBranchSha"], state, who=who).must_succeed() for state in states]
        self._results[number] = (run["id"], states[-1], who)
        return replies[-1]

    def read_submission(self, number: int) -> dict[str, Any]:
        """Mergeyard starts another run when it learns that the base moved. CI reports the same result on it."""
        submission, (known, state, who) = self.queue.submission(number), self._results.get(number, ("", "", ""))
        if known and submission.get("testRunId") != known and submission.get("state") == "testing":
            del self._results[number]
            self.test(number, state, who=who)
        return submission

    def reset(self) -> None:
        """What every step expects: an empty queue, its first settings, and the rules of the first step."""
        try:
            self.queue.post("updateQueue", **SETTINGS)
            self.wait(self._cancel_all, "an empty queue")
        finally:
            self.host.restore_rules()

    def _cancel_all(self) -> bool:
        """Mergeyard refuses to cancel a pull request that is being merged, so this is repeated."""
        queued = self.queue.post("getQueue")["enqueuedPullRequests"]
        for one in queued:
            with suppress(AssertionError):
                self.queue.post("cancelPullRequest", pr={"number": one["prNumber"]})
        return not queued

    # Waits

    def wait(self, probe: Callable[[], Found | None], what: str) -> Found:
        """Asks the Mergeyard server on this machine until the answer is true."""
        deadline = time.monotonic() + self.waits.limit_s
        while not (found := probe()):
            self.host.budget.check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come within {self.waits.limit_s:g} seconds")
            self.host.budget.wait(0.05)
        return found

    def wait_at_host(self, probe: Callable[[], Found | None]) -> Found | None:
        """Asks the Git host at most ten times; returns the last answer."""
        found = probe()
        for _ in range(SETTLE_READS):
            if found:
                break
            self.host.budget.wait(max(self.waits.settle_pause_s, 0.3))
            found = probe()
        return found

    def wait_for_state(self, number: int, *states: str) -> dict[str, Any]:
        def read() -> dict[str, Any] | None:
            submission = self.read_submission(number)
            return submission if submission.get("state") in states else None

        try:
            return self.wait(read, f"the state {' or '.join(states)} of pull request {number}")
        except TimeoutError as error:
            submission = self.queue.submission(number)
            reason = submission.get("reason", {}).get("message", submission)
            raise TimeoutError(f"{error}; it is {submission.get('state')}: {reason}") from None

    # Observations

    def miss(self, name: str, why: str) -> Observation:
        """What could not be measured here."""
        return Observation(name=name, asked="", answer=None, not_measured=why)

    def saw(self, name: str, seen: Any, kind: str = "", matters: str = "", **facts: Any) -> Observation:
        """What was observed: an answer of the Git host, or a value with the request in `asked`."""
        if isinstance(seen, Reply):
            facts.setdefault("asked", seen.asked)
            seen = self._select(seen, kind)
        asked = str(self.neutral(unquote(facts.pop("asked", ""))))
        return Observation(name=name, asked=asked, answer=self.neutral(seen), matters=matters, **facts)

    def state_of(self, number: int) -> dict[str, Any]:
        """What Mergeyard says about the pull request."""
        found = self.queue.submission(number)
        return {"state": found["state"], "reason": found["reason"]["code"], "message": found["reason"]["message"]}

    def wait_for_reason(self, number: int, *reasons: str) -> dict[str, Any]:
        def read() -> dict[str, Any] | None:
            found = self.state_of(number)
            return found if found["reason"] in reasons else None

        try:
            return self.wait(read, f"the reason {' or '.join(reasons)} of pull request {number}")
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is {self.state_of(number)}") from None

    def read_merged(self, number: int, head: str) -> Reply:
        """Reads the pull request when the Git host shows the merge and the check of Mergeyard has ended."""

        def is_complete() -> bool:
            return self.host.is_merged(self.host.read(number).must_succeed()) and self.own_check(head) not in UNFINISHED

        self.wait_at_host(is_complete)
        return self.host.read(number)

    def own_check(self, head: str) -> str | None:
        """The state of the check of Mergeyard, if there is one."""
        return self.host.check_states(self.host.list_checks(head)).get("mergeyard")

    def status_comment(self, number: int) -> str:
        """The comment of Mergeyard, without what differs from run to run."""
        texts = [one["body"] for one in self.host.list_comments(number).must_succeed().body]
        found = [text for text in texts if text.startswith(COMMENT_MARKER)]
        return found[-1].removeprefix(COMMENT_MARKER).strip().partition("\n")[0] if found else ""

    def _select(self, reply: Reply, kind: str) -> dict[str, Any]:
        if not reply.succeeded:
            return {"status": reply.status, "message": reply.message}
        return {"status": reply.status, **{path: pick(reply.body, path) for path in self.host.members.get(kind, ())}}

    def neutral(self, value: Any) -> Any:
        """The value with the same words for what differs from run to run."""
        match value:
            case str():
                return self._neutral_text(value)
            case dict():
                return {key: self.neutral(one) for key, one in cast(dict[str, Any], value).items()}
            case list() | tuple():
                return [self.neutral(one) for one in cast(Sequence[Any], value)]
            case _:
                return value

    def _neutral_text(self, text: str) -> str:
        host = self.host
        known = {
            host.access.api_url: "<api>",
            host.access.web_url: "<web>",
            self.queue.server.url: "<mergeyard>",
            host.fork_path: "<fork>",
            host.path: "<repository>",
            host.name: "<name>",
            host.access.host_name: "<host>",
            self.run_id: "<run>",
            **{login: f"<{role}>" for role, login in reversed(host.logins.items())},
            host.owner: "<owner>",
        }
        for word, name in sorted(known.items(), key=lambda pair: -len(pair[0])):
            if word:
                text = re.sub(rf"(?<![\w<]){re.escape(word)}(?![\w>])", name, text, flags=re.IGNORECASE)
        for pattern, name in PATTERNS:
            text = pattern.sub(name, text)
        return text


PATTERNS = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{7,64}\b"), "<sha>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"(?<=[#!/])\d+|(?<=pr-)\d+"), "<number>"),
    (re.compile(r"\b\d+(\.\d+)? ?(s|ms|seconds?|minutes?)\b"), "<duration>"),
)


def pick(body: Any, path: str) -> Any:
    """The member at a path such as `base.ref`, `labels[].name` or `[].state`."""
    name, _, rest = path.partition(".")
    if name.endswith("[]"):
        items = pick(body, name[:-2]) if name != "[]" else body
        found = cast(list[Any], items) if isinstance(items, list) else []
        return [pick(one, rest) if rest else one for one in found]
    value = cast(dict[str, Any], body).get(name, "<absent>") if isinstance(body, dict) else "<absent>"
    return pick(value, rest) if rest else value


Step = Callable[[Stage], Iterator[Observation]]


def run_step(stage: Stage, title: str, step: Step) -> StepResult:
    """Runs a step to its end, and keeps what it observed until then. A failed step must not ruin those after it."""
    observations, why, failure, started = list[Observation](), "", "", time.monotonic()
    try:
        for observation in step(stage):
            observations += [observation]
    except NotRun as reason:
        why = str(reason)
    except BudgetSpent as reason:
        failure = str(reason)
    except Exception as error:  # a step that fails must not hide the steps after it
        failure = f"{type(error).__name__}: {error}"
        try:
            stage.reset()
        except Exception as other:  # likewise
            failure += f"; the kit could not undo what the step changed: {type(other).__name__}: {other}"
        failure = str(stage.neutral(failure))
    return StepResult(
        title=title,
        observations=observations,
        not_measured=why,
        failed=failure,
        seconds=round(time.monotonic() - started, 1),
    )


# For several steps


def close_story(stage: Stage) -> Iterator[Observation]:
    """What only the whole story shows."""
    errors = [str(entry["event"]) for entry in stage.queue.server.logged_errors()]
    yield stage.saw(
        "errors in the log of Mergeyard",
        errors,
        asked="the log",
        matters="users see it",
        expected="none",
        holds=not errors,
    )
    for route, members in read_shapes(stage.host.replies, stage.neutral).items():
        yield stage.saw(route, members, asked="the types of its members", is_shape=True, matters="the fake misleads us")


REQUESTS_LEFT = re.compile(r" accepts [\d,]+ of [\d,]+ ")


def read_findings(stage: Stage, path: str = "") -> dict[str, Any]:
    """The result of `mergeyard host check`, for the repository or for another path. Without how many requests are left,
    which differs from run to run."""
    result = stage.queue.command("host", "check", stage.queue.host, "--repo", path or stage.host.path, "--json")
    try:
        findings: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    except (ValueError, KeyError):
        return {"exit code": result.returncode, "output": result.stderr[:500]}
    comparable = [finding for finding in findings if not REQUESTS_LEFT.search(finding["message"])]
    return {"exit code": result.returncode, "findings": comparable}
