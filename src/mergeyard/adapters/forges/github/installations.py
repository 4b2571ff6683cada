"""Knows where an app is installed, and has a fresh token of every installation."""

import asyncio
from collections import defaultdict

from msgspec import Struct

from mergeyard.adapters.forges.calling import Caller, words_of
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place
from mergeyard.adapters.forges.times import instant
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.host import HostTrouble

RENEWED_BEFORE = 5 * MINUTE


class NotInstalled(HostTrouble):
    """The app may not see this repository, or there is none."""


class Token(Struct, frozen=True):
    text: str
    until: Instant


class Installations:
    def __init__(self, app: Caller, clock: Clock) -> None:
        """`app` calls in the name of the app itself."""
        self._app = app
        self._clock = clock
        self._ids: dict[Repo, int] = {}
        self._tokens: dict[int, Token] = {}
        self._renewing = defaultdict[int, asyncio.Lock](asyncio.Lock)

    async def of(self, repo: Repo) -> int:
        if repo not in self._ids:
            found = await self._app.get_now(f"{place(repo)}/installation", wire.Installation)
            if found is None:
                raise NotInstalled(f"the app is not installed in {repo}: install it there, or add the repository to it")
            self._ids[repo] = found.id
        return self._ids[repo]

    async def token(self, installation: int) -> str:
        async with self._renewing[installation]:
            known = self._tokens.get(installation)
            if known is None or self._clock.now() >= known.until - RENEWED_BEFORE:
                known = self._tokens[installation] = await self._renewed(installation)
            return known.text

    def forget(self, installation: int) -> None:
        """It was removed or suspended; where the app is installed again it has another number."""
        self._tokens.pop(installation, None)
        self._ids = {repo: number for repo, number in self._ids.items() if number != installation}

    async def _renewed(self, installation: int) -> Token:
        reply = await self._app.send("POST", f"/app/installations/{installation}/access_tokens")
        if reply.status in (403, 404):
            self.forget(installation)
            raise HostTrouble(f"installation {installation} of the app gives no token: {words_of(reply.body)}")
        given = reply.well_received().read(wire.InstallationToken)
        return Token(given.token, instant(given.expires_at))
