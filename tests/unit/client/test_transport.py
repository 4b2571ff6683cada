"""Names of repositories and queues, and exchanges with the server step by step: what is sent, retries and timeouts."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import pytest
from msgspec import json

from mergeyard.client import MergeyardError, QueueName, RepoName, RetryPolicy, Unreachable, client, requests
from mergeyard.client.transport import Exchange, NoReply, Pause, Reply, Request, SendRequest
from tests.support.api_examples import SUBMITTED, a_problem


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("GitHub.com/acme/app", ("github.com", "acme", "app")),
        ("gitlab.com/acme/tools/app", ("gitlab.com", "acme/tools", "app")),
        ("git.local:8080/a/b", ("git.local:8080", "a", "b")),
    ],
)
def test_a_repository_is_a_host_an_owner_and_a_name(text: str, parts: tuple[str, str, str]):
    assert RepoName.parse(text) == RepoName(*parts)


@pytest.mark.parametrize("text", ["", "app", "acme/app", "/acme/app", "git.local/acme/", "git.local//app"])
def test_text_without_one_of_them_is_not_a_repository(text: str):
    with pytest.raises(ValueError, match="write host/owner/name"):
        RepoName.parse(text)


def test_a_queue_is_shown_as_a_branch_of_a_repository():
    assert str(QueueName.of("git.local/acme/app", "main")) == "main of git.local/acme/app"


QUEUE = QueueName.of("git.local/acme/app", "main")
LATER = Reply(status=503, body=json.encode(a_problem("storage_unavailable", retryable=True)), retry_after="5")
NEVER = Reply(status=409, body=json.encode(a_problem("pr_closed", retryable=False)))
HTML = b"<html>Bad gateway</html>"

Outcome = TypeVar("Outcome")


def submitted(**members: Any) -> Reply:
    return Reply(status=200, body=json.encode(SUBMITTED | members))


def stopped_clock() -> float:
    return 0.0


def exchange_for(request: Request[Any], policy: RetryPolicy | None = None, now: Callable[[], float] = stopped_clock):
    return client.send_with_retries(policy or RetryPolicy(), request, now)


def run_exchange(exchange: Exchange[Outcome], *replies: Reply | NoReply) -> tuple[Outcome, list[SendRequest | Pause]]:
    """Runs an exchange with these replies and returns its result and its steps."""
    steps, coming, reply = list[SendRequest | Pause](), iter(replies), None
    while True:
        try:
            steps.append(exchange.send(reply))
        except StopIteration as end:
            return end.value, steps
        reply = next(coming) if isinstance(steps[-1], SendRequest) else None


def sent(steps: list[SendRequest | Pause]) -> list[SendRequest]:
    return [step for step in steps if isinstance(step, SendRequest)]


def pauses(steps: list[SendRequest | Pause]) -> list[float]:
    return [step.seconds for step in steps if isinstance(step, Pause)]


# What is sent


def test_a_request_is_a_post_with_the_members_that_were_named():
    _, (sending,) = run_exchange(exchange_for(requests.submit(QUEUE, 12, priority="high")), submitted())
    assert isinstance(sending, SendRequest)
    assert (sending.method, sending.path) == ("POST", "/v1/submitPullRequest")
    repo = {"host": "git.local", "owner": "acme", "name": "app"}
    assert json.decode(sending.content or b"") == {
        "repo": repo, "targetBranch": "main", "pr": {"number": 12}, "priority": "high",
    }  # fmt: skip


def test_every_write_has_a_key_of_its_own_and_no_read_has_one():
    writing = [run_exchange(exchange_for(requests.cancel(QUEUE, 1)), submitted())[1][0] for _ in range(2)]
    keys = {step.headers["idempotency-key"] for step in writing if isinstance(step, SendRequest)}
    assert len(keys) == 2
    _, (reading,) = run_exchange(exchange_for(requests.get_pull_request(QUEUE, 1)), submitted())
    assert isinstance(reading, SendRequest)
    assert "idempotency-key" not in reading.headers


def test_metrics_are_requested_by_query_and_are_text():
    request = requests.get_metrics(RepoName.parse("git.local/acme/app"))
    metrics, (sending,) = run_exchange(exchange_for(request), Reply(status=200, body=b"up 1\n"))
    assert isinstance(sending, SendRequest)
    assert (sending.method, sending.content) == ("GET", None)
    assert sending.query == {"repo": "acme/app", "repoHost": "git.local"}
    assert metrics == "up 1\n"
    assert requests.get_metrics(host="git.local").members == {"repoHost": "git.local"}


def test_the_timeout_includes_the_time_the_server_is_asked_to_wait():
    policy = RetryPolicy(response_timeout_s=10)
    _, (sending,) = run_exchange(
        exchange_for(requests.list_events(QUEUE, wait_seconds=20), policy),
        Reply(status=200, body=json.encode({"events": [], "next": "0"})),
    )
    assert isinstance(sending, SendRequest)
    assert sending.timeout_s == 30


def test_requests_that_fetch_or_push_have_a_long_timeout():
    for request in (requests.create_queue(QUEUE), requests.update_queue(QUEUE, state="PAUSED")):
        assert client.build_http_request(request, RetryPolicy(response_timeout_s=10)).timeout_s == 610
    assert (
        client.build_http_request(
            requests.update_queue(QUEUE, state="RUNNING"), RetryPolicy(response_timeout_s=10)
        ).timeout_s
        == 10
    )


def test_removing_the_override_of_statuses_has_its_own_member():
    members = requests.update_queue(QUEUE, required_statuses=None, batch=True).members
    assert members == QUEUE.members | {"deleteRequiredStatuses": True, "batch": True}
    assert requests.update_queue(QUEUE, batch=False).members == QUEUE.members | {"batch": False}


# Retries


@pytest.mark.parametrize(
    "failure",
    [LATER, NoReply("refused"), Reply(status=502, body=HTML), Reply(status=429, body=b"")],
    ids=["retryable", "no reply", "proxy error", "proxy rate limit"],
)
def test_temporary_failures_are_retried_with_the_same_key(failure: Reply | NoReply):
    pull_request, steps = run_exchange(
        exchange_for(requests.submit(QUEUE, 1)), failure, failure, submitted(state="pending")
    )
    assert pull_request.state == "pending"
    assert len(sent(steps)) == 3
    assert len(set(map(json.encode, sent(steps)))) == 1


def test_pauses_grow_and_are_never_shorter_than_the_server_asks_for():
    _, steps = run_exchange(exchange_for(requests.cancel(QUEUE, 1)), *[NoReply("")] * 5, LATER, submitted())
    short, last = pauses(steps)[:5], pauses(steps)[5]
    for attempt, pause in enumerate(short):
        assert 0.1 * 2**attempt <= pause <= 0.2 * 2**attempt
    assert last >= 5


@pytest.mark.parametrize(
    "failure",
    [NEVER, Reply(status=404, body=HTML), Reply(status=301, body=b""), Reply(status=200, body=HTML)],
    ids=repr,
)
def test_a_permanent_refusal_is_not_retried(failure: Reply):
    with pytest.raises((MergeyardError, Unreachable)):
        run_exchange(exchange_for(requests.cancel(QUEUE, 1)), failure)


def test_retries_end_before_a_pause_that_exceeds_the_timeout():
    clock: Iterator[float] = map(float, count())
    with pytest.raises(Unreachable, match="no answer"):
        run_exchange(
            exchange_for(requests.cancel(QUEUE, 1), RetryPolicy(total_timeout_s=3), lambda: next(clock)),
            *[NoReply("no answer")] * 3,
        )
    with pytest.raises(MergeyardError):
        run_exchange(exchange_for(requests.cancel(QUEUE, 1), RetryPolicy(total_timeout_s=4)), LATER)


def test_time_spent_in_requests_that_a_proxy_cuts_off_does_not_count():
    cut_off, minute, clock = Reply(status=504, body=HTML), 60, [0.0]
    exchange = exchange_for(requests.create_queue(QUEUE), RetryPolicy(total_timeout_s=8), lambda: clock[-1])
    steps = list[SendRequest | Pause]()

    def run_until_given_up() -> None:
        reply = None
        while True:
            steps.append(exchange.send(reply))
            reply = cut_off if isinstance(steps[-1], SendRequest) else None
            clock.append(clock[-1] + (steps[-1].seconds if isinstance(steps[-1], Pause) else minute))

    with pytest.raises(Unreachable, match="504"):
        run_until_given_up()
    assert len(sent(steps)) > 5
    assert sum(pauses(steps)) <= 8


# Replies


def test_an_error_contains_all_that_the_server_sent():
    body = a_problem("invalid_request", retryable=False) | {"errors": [{"pointer": "/pr", "message": "expected"}]}
    with pytest.raises(MergeyardError) as refused:
        run_exchange(exchange_for(requests.cancel(QUEUE, 1)), Reply(status=400, body=json.encode(body)))
    error = refused.value
    assert (error.code, error.status, error.title) == ("invalid_request", 409, "Refused")
    assert (error.detail, error.request_id, error.retryable) == ("It cannot be.", "r-1", False)
    assert [(flaw.pointer, flaw.message) for flaw in error.errors] == [("/pr", "expected")]
    assert str(error) == "It cannot be. (invalid_request, request r-1)"


def test_unknown_values_and_members_of_a_newer_server_are_accepted():
    pull_request, _ = run_exchange(exchange_for(requests.cancel(QUEUE, 1)), submitted(state="teleported", mood="fine"))
    assert pull_request.state == "teleported"
    code = Reply(status=418, body=json.encode(a_problem("tea_time", retryable=False) | {"mood": "fine"}))
    with pytest.raises(MergeyardError, match="tea_time"):
        run_exchange(exchange_for(requests.cancel(QUEUE, 1)), code)


# Longer exchanges


def test_waiting_polls_until_the_submission_is_concluded():
    over = submitted(state="merged", isCurrentlySubmittedToQueue=False)
    pull_request, steps = run_exchange(
        client.wait_until_concluded(RetryPolicy(), QUEUE, 1), submitted(), LATER, *[submitted()] * 5, over
    )
    assert pull_request.state == "merged"
    assert pauses(steps)[2:] == [1, 2, 4, 5, 5]
