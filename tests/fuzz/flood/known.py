"""What the answers so far have named: runs, commits, cursors, webhooks. Random names lead nowhere, these lead deep."""

from copy import deepcopy
from random import Random
from typing import Any, cast

from schemathesis import Case

from tests.contract.api.desk import REPOSITORY

KEPT = 20
NAMED_AS = {
    "testRunId": "testRunId",
    "verifiedByTestRun": "testRunId",
    "nextCursor": "cursor",
    "next": "after",
    "cursor": "after",
    "testBranchSha": "sha",
    "prSha": "sha",
    "eventId": "eventId",
}
"""Which member of an answer may be which member of a request."""
PULLS = 8


class Known:
    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self._values: dict[str, list[Any]] = {}

    def learn(self, answer: Any) -> None:
        if isinstance(answer, list):
            for item in cast(list[Any], answer):
                self.learn(item)
        elif isinstance(answer, dict):
            for name, value in cast(dict[str, Any], answer).items():
                self._keep(NAMED_AS.get(name), value)
                self.learn(value)

    def learn_webhook(self, webhook: str, url: str) -> None:
        """The only one that there is now."""
        self._values |= {"id": [webhook], "url": [url], "eventId": []}

    def _keep(self, name: str | None, value: Any) -> None:
        if name is None or not isinstance(value, str):
            return
        values = self._values.setdefault(name, [])
        if value not in values:
            values.append(value)
            del values[:-KEPT]

    def name_what_is_there(self, case: Case[Any], branch: str) -> None:
        """Good names are mostly exchanged for known ones; bad ones stay as they are."""
        if not isinstance(case.body, dict):
            return
        case.body = deepcopy(case.body)  # an example is the very object that others read
        members = cast(dict[str, Any], case.body)
        self._rename(members)
        repo: Any = members.get("repo")
        if isinstance(repo, dict) and all(isinstance(cast(Any, repo).get(name), str) for name in REPOSITORY):
            members["repo"] = REPOSITORY
        if isinstance(members.get("targetBranch"), str):
            members["targetBranch"] = branch
        if isinstance(members.get("waitSeconds"), int):
            members["waitSeconds"] = min(members["waitSeconds"], 0)
        if isinstance(members.get("pr"), dict):
            pull = cast(dict[str, Any], members["pr"])
            self._rename(pull)
            if isinstance(pull.get("number"), int):
                pull["number"] %= PULLS + 2

    def _rename(self, members: dict[str, Any]) -> None:
        for name in members.keys() & self._values.keys():
            if self._values[name] and isinstance(members[name], str | int) and self._chance.random() < 0.7:
                members[name] = self._chance.choice(self._values[name])
