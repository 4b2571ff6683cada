"""Talks with the server, step by step and without one: what is sent, when it is sent again, and when it is given up."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import pytest
from msgspec import json

from mergeyard.client import MergeyardError, Patience, QueueName, RepoName, Unreachable, requests, talking
from mergeyard.client.request import Request
from mergeyard.client.steps import Pause, Reply, Sending, Silence, Talk
from tests.support.answers import EVENT, SUBMITTED, problem

QUEUE = QueueName.of("git.local/acme/app", "main")
LATER = Reply(status=503, body=json.encode(problem("storage_unavailable", retryable=True)), retry_after="5")
NEVER = Reply(status=409, body=json.encode(problem("pr_closed", retryable=False)))
HTML = b"<html>Bad gateway</html>"

Outcome = TypeVar("Outcome")


def said(**members: Any) -> Reply:
    return Reply(status=200, body=json.encode(SUBMITTED | members))


def standing_still() -> float:
    return 0.0


def talk_about(request: Request[Any], patience: Patience | None = None, now: Callable[[], float] = standing_still):
    return talking.ask(patience or Patience(), request, now)


def held(talk: Talk[Outcome], *replies: Reply | Silence) -> tuple[Outcome, list[Sending | Pause]]:
    """Goes through a talk in which these are the answers, and gives its end and its steps."""
    steps, coming, heard = list[Sending | Pause](), iter(replies), None
    while True:
        try:
            steps.append(talk.send(heard))
        except StopIteration as end:
            return end.value, steps
        heard = next(coming) if isinstance(steps[-1], Sending) else None


def sent(steps: list[Sending | Pause]) -> list[Sending]:
    return [step for step in steps if isinstance(step, Sending)]


def pauses(steps: list[Sending | Pause]) -> list[float]:
    return [step.seconds for step in steps if isinstance(step, Pause)]


# What is sent


def test_a_request_is_a_post_with_the_members_that_were_named():
    _, (sending,) = held(talk_about(requests.submit(QUEUE, 12, priority="high")), said())
    assert isinstance(sending, Sending)
    assert (sending.method, sending.path) == ("POST", "/v1/submitPullRequest")
    repo = {"host": "git.local", "owner": "acme", "name": "app"}
    assert json.decode(sending.content or b"") == {
        "repo": repo, "targetBranch": "main", "pr": {"number": 12}, "priority": "high",
    }  # fmt: skip


def test_every_write_has_a_key_of_its_own_and_no_read_has_one():
    writing = [held(talk_about(requests.cancel(QUEUE, 1)), said())[1][0] for _ in range(2)]
    keys = {step.headers["idempotency-key"] for step in writing if isinstance(step, Sending)}
    assert len(keys) == 2
    _, (reading,) = held(talk_about(requests.get_pull_request(QUEUE, 1)), said())
    assert isinstance(reading, Sending)
    assert "idempotency-key" not in reading.headers


def test_metrics_are_asked_for_by_address_and_are_text():
    request = requests.get_metrics(RepoName.parse("git.local/acme/app"))
    told, (sending,) = held(talk_about(request), Reply(status=200, body=b"up 1\n"))
    assert isinstance(sending, Sending)
    assert (sending.method, sending.content) == ("GET", None)
    assert sending.query == {"repo": "acme/app", "repoHost": "git.local"}
    assert told == "up 1\n"


def test_whoever_asks_the_server_to_wait_gives_it_the_time():
    patience = Patience(one_answer=10)
    _, (sending,) = held(
        talk_about(requests.list_events(QUEUE, wait_seconds=20), patience),
        Reply(status=200, body=json.encode({"events": [], "next": "0"})),
    )
    assert isinstance(sending, Sending)
    assert sending.seconds == 30


def test_what_must_be_fetched_or_pushed_may_take_long():
    for request in (requests.create_queue(QUEUE), requests.update_queue(QUEUE, state="PAUSED")):
        assert talking.written(request, Patience(one_answer=10)).seconds == 610
    assert talking.written(requests.update_queue(QUEUE, state="RUNNING"), Patience(one_answer=10)).seconds == 10


def test_dropping_the_override_of_statuses_is_said_in_its_own_word():
    members = requests.update_queue(QUEUE, required_statuses=None, batch=True).members
    assert members == QUEUE.members | {"deleteRequiredStatuses": True, "batch": True}
    assert requests.update_queue(QUEUE, batch=False).members == QUEUE.members | {"batch": False}


# When it is sent again


@pytest.mark.parametrize(
    "trouble",
    [LATER, Silence("refused"), Reply(status=502, body=HTML), Reply(status=429, body=b"")],
    ids=["retryable", "silence", "a proxy's", "a proxy's limit"],
)
def test_passing_trouble_is_waited_out_with_the_same_key(trouble: Reply | Silence):
    pull, steps = held(talk_about(requests.submit(QUEUE, 1)), trouble, trouble, said(state="pending"))
    assert pull.state == "pending"
    assert len(sent(steps)) == 3
    assert len(set(map(json.encode, sent(steps)))) == 1


def test_pauses_grow_and_are_never_shorter_than_the_server_asks_for():
    _, steps = held(talk_about(requests.cancel(QUEUE, 1)), *[Silence("")] * 5, LATER, said())
    short, last = pauses(steps)[:5], pauses(steps)[5]
    for attempt, pause in enumerate(short):
        assert 0.1 * 2**attempt <= pause <= 0.2 * 2**attempt
    assert last >= 5


@pytest.mark.parametrize(
    "trouble",
    [NEVER, Reply(status=404, body=HTML), Reply(status=301, body=b""), Reply(status=200, body=HTML)],
    ids=repr,
)
def test_a_clear_no_is_not_asked_again(trouble: Reply):
    with pytest.raises((MergeyardError, Unreachable)):
        held(talk_about(requests.cancel(QUEUE, 1)), trouble)


def test_patience_ends_before_a_pause_that_would_be_too_long():
    clock: Iterator[float] = map(float, count())
    with pytest.raises(Unreachable, match="asleep"):
        held(
            talk_about(requests.cancel(QUEUE, 1), Patience(altogether=3), lambda: next(clock)), *[Silence("asleep")] * 3
        )
    with pytest.raises(MergeyardError):
        held(talk_about(requests.cancel(QUEUE, 1), Patience(altogether=4)), LATER)


def test_the_time_of_work_that_somebody_in_between_breaks_off_costs_no_patience():
    broken_off, minute, clock = Reply(status=504, body=HTML), 60, [0.0]
    talk = talk_about(requests.create_queue(QUEUE), Patience(altogether=8), lambda: clock[-1])
    steps = list[Sending | Pause]()

    def go_on() -> None:
        heard = None
        while True:
            steps.append(talk.send(heard))
            heard = broken_off if isinstance(steps[-1], Sending) else None
            clock.append(clock[-1] + (steps[-1].seconds if isinstance(steps[-1], Pause) else minute))

    with pytest.raises(Unreachable, match="504"):
        go_on()
    assert len(sent(steps)) > 5
    assert sum(pauses(steps)) <= 8


# What is understood


def test_a_refusal_tells_all_that_the_server_said():
    flawed = problem("invalid_request", retryable=False) | {"errors": [{"pointer": "/pr", "message": "expected"}]}
    with pytest.raises(MergeyardError) as refused:
        held(talk_about(requests.cancel(QUEUE, 1)), Reply(status=400, body=json.encode(flawed)))
    error = refused.value
    assert (error.code, error.status, error.title) == ("invalid_request", 409, "Refused")
    assert (error.detail, error.request_id, error.retryable) == ("It cannot be.", "r-1", False)
    assert [(flaw.pointer, flaw.message) for flaw in error.errors] == [("/pr", "expected")]
    assert str(error) == "It cannot be. (invalid_request, request r-1)"


def test_words_and_members_of_a_newer_server_break_nothing():
    pull, _ = held(talk_about(requests.cancel(QUEUE, 1)), said(state="teleported", mood="fine"))
    assert pull.state == "teleported"
    code = Reply(status=418, body=json.encode(problem("tea_time", retryable=False) | {"mood": "fine"}))
    with pytest.raises(MergeyardError, match="tea_time"):
        held(talk_about(requests.cancel(QUEUE, 1)), code)


# Longer talks


def test_waiting_looks_again_until_the_stay_is_over():
    over = said(state="merged", isCurrentlySubmittedToQueue=False)
    pull, steps = held(talking.wait(Patience(), QUEUE, 1), said(), LATER, *[said()] * 5, over)
    assert pull.state == "merged"
    assert pauses(steps)[2:] == [1, 2, 4, 5, 5]


def test_events_are_read_on_from_where_the_page_before_ended():
    series = talking.events(QUEUE, after="7")
    assert series.first.members["after"] == "7"
    page, _ = held(talk_about(series.first), Reply(status=200, body=json.encode({"events": [EVENT], "next": "9"})))
    assert [event.cursor for event in series.items(page)] == [EVENT["cursor"]]
    following = series.then(page)
    assert following is not None
    assert following.members["after"] == "9"
