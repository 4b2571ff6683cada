"""Asks for somebody, keeps what is answered under a key, and holds every refusal to having changed nothing."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import httpx
from msgspec import Struct

from tests.contract.api.desk import code_of
from tests.fuzz.machine.grounds import BRANCHES, Grounds, Place
from tests.fuzz.machine.model import NEEDED, PEOPLE

DAY = 24 * 60 * 60 * 1000
PIN = {"x-request-id": "the same for all"}


class Kept(Struct, frozen=True):
    """A request under a key that was answered with 200."""

    who: str
    endpoint: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    answer: bytes
    at: int


class Client:
    def __init__(self, grounds: Grounds) -> None:
        self.grounds = grounds
        self.places: dict[str, Place] = {"here": grounds.new_place(), "there": grounds.new_place()}
        self.kept: list[Kept] = []
        self.asked = 0
        self._keys = count(1)
        self._tokens = {
            who: grounds.new_token(*person.scopes, place=self.places[person.place] if person.place else None)
            if person.valid
            else grounds.revoked_token()
            for who, person in PEOPLE.items()
        }

    def queue(self, place: str, branch: str) -> dict[str, Any]:
        return {"repo": self.places[place].reference, "targetBranch": branch}

    def ask(self, who: str, endpoint: str, body: dict[str, Any], *, keyed: bool = False) -> dict[str, Any] | str:
        """The answer, or the code of the refusal."""
        headers = {"idempotency-key": f"{self.places['here'].name}-{next(self._keys)}"} if keyed else {}
        before = self._seen(body) if endpoint in NEEDED else b""
        response = self._send(who, endpoint, body, headers)
        if response.status_code != 200:
            code = code_of(response)
            assert endpoint not in NEEDED or self._seen(body) == before, (
                f"{endpoint} was refused with {code}, but changed something"
            )
            return code
        assert "idempotency-replayed" not in response.headers
        if keyed:
            self.kept.append(Kept(who, endpoint, body, headers, response.content, self.grounds.world.clock.now()))
        return response.json()

    def read(self, endpoint: str, body: dict[str, Any]) -> Any:
        answer = self._send("operator", endpoint, body, {})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def ask_again(self, kept: Kept) -> None:
        """The same bytes, and no second effect; a day later it is a new request, and then nobody asks again."""
        if self.grounds.world.clock.now() - kept.at >= DAY:
            return
        before = self._seen(kept.body)
        again = self._send(kept.who, kept.endpoint, kept.body, kept.headers)
        assert (again.status_code, again.content) == (200, kept.answer), again.text
        assert again.headers["idempotency-replayed"] == "true"
        another = {"concurrency": 7} if kept.endpoint in ("createQueue", "updateQueue") else {"more": 1}
        other = self._send(kept.who, kept.endpoint, kept.body | another, kept.headers)
        assert other.status_code == 422, other.text
        assert code_of(other) == "idempotency_key_reused"
        assert self._seen(kept.body) == before

    def looks_like_nothing(self, place: str, branch: str, endpoint: str, body: dict[str, Any]) -> None:
        """What lies outside of a token is answered like what is not there, byte for byte."""
        queue, nowhere = self.queue(place, branch), self.queue(place, "n" * len(branch))
        outside = self._send("stranger", endpoint, body | queue, PIN)
        nothing = self._send("stranger", endpoint, body | nowhere, PIN)
        assert outside.status_code == nothing.status_code
        assert outside.content.replace(branch.encode(), b"-") == nothing.content.replace(b"n" * len(branch), b"-")

    def _send(self, who: str, endpoint: str, body: dict[str, Any], headers: Mapping[str, str]) -> httpx.Response:
        self.asked += 1
        return self.grounds.ask(endpoint, body, self._tokens[who], headers)

    def _seen(self, body: dict[str, Any]) -> bytes:
        """All that can be read of the queues of its repository."""
        queues = ({"repo": body["repo"], "targetBranch": branch} for branch in BRANCHES)
        asked = [(endpoint, queue) for queue in queues for endpoint in ("getQueue", "listPullRequests")]
        return b"".join(self._send("operator", *each, PIN).content for each in asked)
