"""Sends requests for several users, records keyed responses, and checks that a refusal changed nothing."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx2
from msgspec import Struct

from tests.contract.api.harness import code_of
from tests.fuzz.machine.environment import BRANCHES, FuzzEnvironment, FuzzRepository
from tests.fuzz.machine.model import REQUIRED_SCOPES, USERS

DAY = 24 * 60 * 60 * 1000
FIXED_REQUEST_ID = {"x-request-id": "the same for all"}


class Recorded(Struct, frozen=True):
    """A request with an idempotency key that was answered with 200."""

    who: str
    endpoint: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    response: bytes
    at: int


class Client:
    def __init__(self, environment: FuzzEnvironment) -> None:
        self.environment = environment
        self.repositories: dict[str, FuzzRepository] = {
            "here": environment.new_repository(),
            "there": environment.new_repository(),
        }
        self.recorded: list[Recorded] = []
        self.request_count = 0
        self._keys = count(1)
        self._tokens = {
            who: environment.new_token(
                *person.scopes, repository=self.repositories[person.repository] if person.repository else None
            )
            if person.valid
            else environment.revoked_token()
            for who, person in USERS.items()
        }

    def queue(self, place: str, branch: str) -> dict[str, Any]:
        return {"repo": self.repositories[place].reference, "targetBranch": branch}

    def post(self, who: str, endpoint: str, body: dict[str, Any], *, keyed: bool = False) -> dict[str, Any] | str:
        """The response, or the code of the refusal."""
        headers = {"idempotency-key": f"{self.repositories['here'].name}-{next(self._keys)}"} if keyed else {}
        before = self._read_queues(body) if endpoint in REQUIRED_SCOPES else b""
        response = self._send(who, endpoint, body, headers)
        if response.status_code != 200:
            code = code_of(response)
            assert endpoint not in REQUIRED_SCOPES or self._read_queues(body) == before, (
                f"{endpoint} was refused with {code}, but changed something"
            )
            return code
        assert "idempotency-replayed" not in response.headers
        if keyed:
            self.recorded.append(
                Recorded(who, endpoint, body, headers, response.content, self.environment.world.clock.now())
            )
        return response.json()

    def read(self, endpoint: str, body: dict[str, Any]) -> Any:
        response = self._send("operator", endpoint, body, {})
        assert response.status_code == 200, response.text
        return response.json()

    def repeat(self, recorded: Recorded) -> None:
        """Repeats a request: the same bytes, and no second effect. Not after a day: then it is a new request."""
        if self.environment.world.clock.now() - recorded.at >= DAY:
            return
        before = self._read_queues(recorded.body)
        again = self._send(recorded.who, recorded.endpoint, recorded.body, recorded.headers)
        assert (again.status_code, again.content) == (200, recorded.response), again.text
        assert again.headers["idempotency-replayed"] == "true"
        another = {"concurrency": 7} if recorded.endpoint in ("createQueue", "updateQueue") else {"more": 1}
        other = self._send(recorded.who, recorded.endpoint, recorded.body | another, recorded.headers)
        assert other.status_code == 422, other.text
        assert code_of(other) == "idempotency_key_reused"
        assert self._read_queues(recorded.body) == before

    def assert_looks_missing(self, place: str, branch: str, endpoint: str, body: dict[str, Any]) -> None:
        """What a token does not cover gets the same response as what does not exist, byte for byte."""
        queue, missing = self.queue(place, branch), self.queue(place, "n" * len(branch))
        outside = self._send("stranger", endpoint, body | queue, FIXED_REQUEST_ID)
        nothing = self._send("stranger", endpoint, body | missing, FIXED_REQUEST_ID)
        assert outside.status_code == nothing.status_code
        assert outside.content.replace(branch.encode(), b"-") == nothing.content.replace(b"n" * len(branch), b"-")

    def _send(self, who: str, endpoint: str, body: dict[str, Any], headers: Mapping[str, str]) -> httpx2.Response:
        self.request_count += 1
        return self.environment.post(endpoint, body, self._tokens[who], headers)

    def _read_queues(self, body: dict[str, Any]) -> bytes:
        """All that can be read of the queues of the repository."""
        queues = ({"repo": body["repo"], "targetBranch": branch} for branch in BRANCHES)
        requests = [(endpoint, queue) for queue in queues for endpoint in ("getQueue", "listPullRequests")]
        return b"".join(self._send("operator", *each, FIXED_REQUEST_ID).content for each in requests)
