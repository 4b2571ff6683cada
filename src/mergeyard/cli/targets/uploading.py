"""Uploads impacted targets to the server; asks again when that may help, since the same upload twice is one."""

import time

import httpx
import msgspec
from msgspec import Struct

from mergeyard.api.answers import TargetsKept
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.repositories import QueueKey
from mergeyard.domain.targets import Targets

PAUSES = (0.2, 1, 3)
"""Seconds before asking again."""
SECONDS = 60
"""For one answer: a list may be twenty megabytes."""


class Refused(Exception):
    """The server did not take the targets, and the words tell why."""


class Problem(Struct):
    """What we need of an error's body."""

    detail: str
    retryable: bool


class Subject(Struct, frozen=True):
    """Which pull request of which queue; without a commit its present head is meant."""

    queue: QueueKey
    number: PrNumber
    sha: Sha | None


class Server(Struct, frozen=True):
    url: str
    token: str


def upload(server: Server, subject: Subject, targets: Targets) -> TargetsKept:
    headers = {"x-api-token": server.token, "content-type": "application/json"}
    content = msgspec.json.encode(request(subject, targets))
    with httpx.Client(base_url=server.url, headers=headers, timeout=SECONDS) as http:
        answer = ask(http, content)
        for pause in PAUSES:
            if isinstance(answer, TargetsKept) or not answer.retryable:
                break
            time.sleep(pause)
            answer = ask(http, content)
    if isinstance(answer, Problem):
        raise Refused(f"{server.url} did not take the targets: {answer.detail}")
    return answer


def ask(http: httpx.Client, content: bytes) -> TargetsKept | Problem:
    try:
        answer = http.post("/v1/setImpactedTargets", content=content)
    except httpx.TransportError as error:
        return Problem(f"it did not answer ({error or type(error).__name__})", retryable=True)
    try:
        return msgspec.json.decode(answer.content, type=TargetsKept if answer.is_success else Problem)
    except msgspec.MsgspecError:
        return Problem(f"it answered {answer.status_code}, but not as Mergeyard does", retryable=answer.is_server_error)


def request(subject: Subject, targets: Targets) -> dict[str, object]:
    sha = {} if subject.sha is None else {"sha": subject.sha}
    return {
        "repo": subject.queue.repo,
        "targetBranch": subject.queue.branch,
        "pr": {"number": subject.number, **sha},
        "impactedTargets": as_members(targets),
    }


def as_members(targets: Targets) -> str | list[str]:
    """As the API takes them."""
    return "ALL" if targets.everything else sorted(targets.names)
