"""The guises in which a request is sent: by whom, about what, and how often. Drawing one costs more than sending it."""

from typing import Any, cast
from uuid import uuid4

import httpx
from schemathesis import Case

from mergeyard.api import routes
from tests.contract.api.random_requests import as_sent, judge
from tests.fuzz.flood.target import BRANCHES, Target
from tests.fuzz.flood.toll import Toll

NAMES_NO_QUEUE = {name for name in routes.TABLE if "ebhook" in name or name in ("listQueues", "reportCommitStatus")}
KEY = b"idempotency-key"
NO_TOKEN, NO_SUCH_METHOD = 401, 405


class Sender:
    def __init__(self, target: Target, case: Case[Any], toll: Toll) -> None:
        self.case = case
        self.endpoint = case.path.removeprefix("/")
        self.writes: bool = routes.TABLE[self.endpoint].get("writes", False)
        self.target = target
        self._toll = toll

    def send(self, token: str, key: bytes | None = None) -> httpx.Response | None:
        """None: no client would send such a thing."""
        sent = as_sent(self.case, str(self.target.client.base_url).rstrip("/"), token)
        headers = sent.headers
        if key is not None:
            headers = [*(pair for pair in headers if pair[0].lower() != KEY), (KEY, key)]
        what = {"params": sent.params, "content": sent.content}
        try:
            response = self.target.client.request(sent.method, sent.url, headers=headers, **what)
        except (httpx.LocalProtocolError, httpx.InvalidURL):
            self._toll.unsent += 1
            return None
        return self._judged(response)

    def _judged(self, response: httpx.Response) -> httpx.Response:
        self._toll.answers[self.endpoint, response.status_code] += 1
        judge(self.case, response)
        if not response.is_success:
            self._toll.codes[response.json()["code"]] += 1
        elif response.headers["content-type"].startswith("application/json"):
            self.target.known.learn(response.json())
        return response


def as_it_is(sender: Sender) -> None:
    sender.send(sender.target.token)


def about_what_is_there(sender: Sender) -> None:
    sender.target.known.name_what_is_there(sender.case, BRANCHES.get(sender.endpoint, "main"))
    sender.send(sender.target.token)


def twice_under_one_key(sender: Sender) -> None:
    """The second time it has no effect, and gets the same answer."""
    if not sender.writes:
        return
    key = uuid4().hex.encode()
    first, second = (sender.send(sender.target.token, key) for _ in range(2))
    if first is not None and second is not None and first.is_success:
        assert second.headers.get("idempotency-replayed") == "true"
        assert second.content == first.content or "secret" in first.json()


def as_one_who_may_only_read(sender: Sender) -> None:
    answer = sender.send(sender.target.reader)
    assert answer is None or not answer.is_success or not sender.writes


def as_a_stranger(sender: Sender) -> None:
    """Who may do everything, but elsewhere."""
    answer = sender.send(sender.target.stranger)
    named = isinstance(sender.case.body, dict) and "targetBranch" in cast(dict[str, Any], sender.case.body)
    assert answer is None or not named or not answer.is_success or sender.endpoint in NAMES_NO_QUEUE


def as_nobody(sender: Sender) -> None:
    answer = sender.send("")
    assert answer is None or answer.status_code in (NO_TOKEN, NO_SUCH_METHOD), answer.text


GUISES = (as_it_is, about_what_is_there, twice_under_one_key, as_one_who_may_only_read, as_a_stranger, as_nobody)
