"""Remembers which checks only one app may report, as the rules of branches have it."""

from collections.abc import Iterable, Mapping

from mergeyard.adapters.forges.github.guards import RequiredCheck
from mergeyard.domain.repositories import Repo

Tied = Mapping[str, frozenset[int]]
"""Names of checks, each with the apps that may say that it passed; what is not among them, anybody may."""


def tied(checks: Iterable[RequiredCheck]) -> Tied:
    apps = [(check.context, check.app) for check in checks if check.app is not None]
    return {context: frozenset(app for name, app in apps if name == context) for context, _ in apps}


class Ties:
    """Of a commit nobody can tell which branch it is meant for: the rules of all that were asked for hold."""

    def __init__(self) -> None:
        self._checks: dict[Repo, dict[str, frozenset[RequiredCheck]]] = {}

    def learn(self, repo: Repo, branch: str, checks: frozenset[RequiredCheck]) -> None:
        self._checks.setdefault(repo, {})[branch] = checks

    def of(self, repo: Repo) -> Tied:
        return tied(check for checks in self._checks.get(repo, {}).values() for check in checks)
