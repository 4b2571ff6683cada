"""Knows where an app is installed, and has a fresh token for every repository, good for that one alone."""

import asyncio
from collections import defaultdict

from msgspec import Struct

from mergeyard.adapters.forges.calling import Caller, words_of
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.names import place
from mergeyard.adapters.forges.github.permissions import requested
from mergeyard.adapters.forges.times import instant
from mergeyard.domain.instants import MINUTE, Instant
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.host import HostTrouble

RENEWED_BEFORE = 5 * MINUTE
REFUSED = (403, 404, 422)
"""The installation is gone or suspended, or it has lost the repository or a permission."""


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
        self._found: dict[Repo, wire.Installation] = {}
        self._tokens: dict[Repo, Token] = {}
        self._renewing = defaultdict[Repo, asyncio.Lock](asyncio.Lock)

    async def of(self, repo: Repo) -> int:
        return (await self._installation(repo)).id

    async def token(self, repo: Repo) -> str:
        async with self._renewing[repo]:
            known = self._tokens.get(repo)
            if known is None or self._clock.now() >= known.until - RENEWED_BEFORE:
                known = self._tokens[repo] = await self._renewed(repo)
            return known.text

    def forget(self, repo: Repo) -> None:
        """It was removed or suspended; where the app is installed again it has another number."""
        self._tokens.pop(repo, None)
        self._found.pop(repo, None)

    async def _installation(self, repo: Repo) -> wire.Installation:
        if repo not in self._found:
            found = await self._app.get_now(f"{place(repo)}/installation", wire.Installation)
            if found is None:
                raise NotInstalled(f"the app is not installed in {repo}: install it there, or add the repository to it")
            self._found[repo] = found
        return self._found[repo]

    async def _renewed(self, repo: Repo) -> Token:
        if self._tokens.pop(repo, None) is not None:
            self._found.pop(repo, None)  # Other permissions may be granted since the last token was made.
        installation = await self._installation(repo)
        wanted = {"repositories": [repo.name], "permissions": requested(installation.permissions)}
        reply = await self._app.send("POST", f"/app/installations/{installation.id}/access_tokens", wanted)
        if reply.status in REFUSED:
            self.forget(repo)
            raise HostTrouble(
                f"the app's installation {installation.id} gives no token for {repo}: {words_of(reply.body)}"
            )
        given = reply.well_received().read(wire.InstallationToken)
        return Token(given.token, instant(given.expires_at))
