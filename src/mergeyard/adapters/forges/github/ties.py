"""Knows which checks only one app may report, as the rules of a branch have it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.github import protection
from mergeyard.adapters.forges.github.guards import RequiredCheck
from mergeyard.domain.instants import MINUTE, Instant, later
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock

Tied = Mapping[str, frozenset[int]]
"""Names of checks, each with the apps that may say that it passed; what is not among them, anybody may."""


def tied(checks: Iterable[RequiredCheck]) -> Tied:
    apps = [(check.context, check.app) for check in checks if check.app is not None]
    return {context: frozenset(app for name, app in apps if name == context) for context, _ in apps}


class Rules(Struct, frozen=True):
    checks: frozenset[RequiredCheck]
    old_at: Instant


class Ties:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rules: dict[tuple[Repo, str], Rules] = {}
        self._reading = defaultdict[Repo, asyncio.Lock](asyncio.Lock)

    async def of(self, caller: Caller, repo: Repo, branch: str) -> Tied:
        """Whoever does not know the rules believes nobody: what keeps us from reading them is raised."""
        async with self._reading[repo]:
            rules = self._rules.get((repo, branch))
            if rules is not None and self._clock.now() < rules.old_at:
                return tied(rules.checks)
            return tied(await self.read(caller, repo, branch))

    async def read(self, caller: Caller, repo: Repo, branch: str) -> frozenset[RequiredCheck]:
        old_at = later(self._clock.now(), MINUTE)
        checks = await protection.required_checks(caller, repo, branch)
        self._rules[repo, branch] = Rules(checks, old_at)
        return checks
