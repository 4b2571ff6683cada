"""Counts of responses so far, by endpoint, status and error code."""

from collections import Counter
from collections.abc import Callable
from time import monotonic
from typing import Any, cast
from uuid import uuid4

import httpx2
import hypothesis
from hypothesis import given
from msgspec import Struct, field
from schemathesis import Case, GenerationMode

from mergeyard.api import routes
from tests.contract.api.random_requests import check_response, operations, to_outgoing_request
from tests.fuzz.flood.target import BRANCHES, Target
from tests.fuzz.properties import fuzz_settings


class FloodReport(Struct):
    responses: Counter[tuple[str, int]] = field(default_factory=Counter[tuple[str, int]])
    """By endpoint and status."""
    codes: Counter[str] = field(default_factory=Counter[str])
    """Error codes."""
    unsent: int = 0
    """Requests that the HTTP client refuses to send, such as headers with a line break."""
    seconds: float = 0
    memory: list[float] = field(default_factory=list[float])
    """In MiB, after every round."""

    @property
    def requests(self) -> int:
        return self.responses.total()


NAMES_NO_QUEUE = {name for name in routes.TABLE if "ebhook" in name or name in ("listQueues", "reportCommitStatus")}
KEY = b"idempotency-key"
NO_TOKEN, NO_SUCH_METHOD = 401, 405


class RequestSender:
    def __init__(self, target: Target, case: Case[Any], report: FloodReport) -> None:
        self.case = case
        self.endpoint = case.path.removeprefix("/")
        self.writes: bool = routes.TABLE[self.endpoint].get("writes", False)
        self.target = target
        self._report = report

    def send(self, token: str, key: bytes | None = None) -> httpx2.Response | None:
        """None if the HTTP client refuses to send it."""
        sent = to_outgoing_request(self.case, str(self.target.client.base_url).rstrip("/"), token)
        headers = sent.headers
        if key is not None:
            headers = [*(pair for pair in headers if pair[0].lower() != KEY), (KEY, key)]
        content = {"params": sent.params, "content": sent.content}
        try:
            response = self.target.client.request(sent.method, sent.url, headers=headers, **content)
        except (httpx2.LocalProtocolError, httpx2.InvalidURL):
            self._report.unsent += 1
            return None
        return self._checked(response)

    def _checked(self, response: httpx2.Response) -> httpx2.Response:
        self._report.responses[self.endpoint, response.status_code] += 1
        check_response(self.case, response)
        if not response.is_success:
            self._report.codes[response.json()["code"]] += 1
        elif response.headers["content-type"].startswith("application/json"):
            self.target.known.learn(response.json())
        return response


def unchanged(sender: RequestSender) -> None:
    sender.send(sender.target.token)


def about_existing_things(sender: RequestSender) -> None:
    sender.target.known.use_known_values(sender.case, BRANCHES.get(sender.endpoint, "main"))
    sender.send(sender.target.token)


def twice_with_one_key(sender: RequestSender) -> None:
    """The second request has no effect and gets the same response."""
    if not sender.writes:
        return
    key = uuid4().hex.encode()
    first, second = (sender.send(sender.target.token, key) for _ in range(2))
    if first is not None and second is not None and first.is_success:
        assert second.headers.get("idempotency-replayed") == "true"
        assert second.content == first.content or "secret" in first.json()


def as_reader(sender: RequestSender) -> None:
    response = sender.send(sender.target.reader)
    assert response is None or not response.is_success or not sender.writes


def as_stranger(sender: RequestSender) -> None:
    """With a token for everything, but on another repository."""
    response = sender.send(sender.target.stranger)
    named = isinstance(sender.case.body, dict) and "targetBranch" in cast(dict[str, Any], sender.case.body)
    assert response is None or not named or not response.is_success or sender.endpoint in NAMES_NO_QUEUE


def without_token(sender: RequestSender) -> None:
    response = sender.send("")
    assert response is None or response.status_code in (NO_TOKEN, NO_SUCH_METHOD), response.text


VARIANTS = (unchanged, about_existing_things, twice_with_one_key, as_reader, as_stranger, without_token)


CASES_PER_ENDPOINT = 25
"""In each round and generation mode."""
MAX_GROWTH_MIB = 200
"""How much the server's memory can grow after the first round."""


def send_requests(
    target: Target, requests: int, seed: int, on_progress: Callable[[FloodReport], object] = lambda _: None
) -> FloodReport:
    """Sends whole rounds, so that every endpoint is covered."""
    report, started_at = FloodReport(), monotonic()
    while report.requests < requests:
        target.begin_round()
        for operation in operations():
            for mode in GenerationMode:
                target.restore()
                send_some(target, operation.as_strategy(generation_mode=mode), report, seed)
                report.seconds = monotonic() - started_at
                on_progress(report)
        seed += 1
        report.memory.append(target.memory())
    target.check()
    assert report.memory[-1] < report.memory[0] + MAX_GROWTH_MIB, (
        f"the server's memory grows: {report.memory[0]:.0f} → {report.memory[-1]:.0f} MiB"
    )
    return report


def send_some(target: Target, cases: Any, report: FloodReport, seed: int) -> None:
    @fuzz_settings(CASES_PER_ENDPOINT)
    @hypothesis.seed(seed)
    @given(cases)
    def send_case(case: Case[Any]) -> None:
        for send in VARIANTS:
            send(RequestSender(target, case, report))

    send_case()
