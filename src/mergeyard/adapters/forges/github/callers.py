"""Gives the caller for a repository: with the configured token, or with an app's token for that repository alone."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.adapters.forges.access import Access, App
from mergeyard.adapters.forges.calling import Caller
from mergeyard.adapters.forges.calling import Credentials as Headers
from mergeyard.adapters.forges.git_login import signed_in
from mergeyard.adapters.forges.github import wire
from mergeyard.adapters.forges.github.installations import Installations
from mergeyard.adapters.forges.github.names import place, same_name
from mergeyard.adapters.forges.github.signing import signed
from mergeyard.adapters.forges.limits import Limits
from mergeyard.domain.repositories import Repo
from mergeyard.ports.clock import Clock
from mergeyard.ports.git import Remote
from mergeyard.ports.host import HostTrouble

GITHUB = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
GIT_USER = "x-access-token"


class Identity(Struct, frozen=True):
    """The account that we act as."""

    login: str
    app_id: int | None = None
    """None: it is the account of the token."""


class Callers:
    """An app's limits are counted for each installation, a token's for all that it does."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._callers: dict[int, Caller] = {}
        self.own = self._caller(self._as_ourselves)
        """Calls in our own name: of the app, or of whoever gave the token."""
        self.installations = Installations(self.own, clock) if access.app else None
        self._identity: Identity | None = None

    async def of(self, repo: Repo) -> Caller:
        if self.installations is None:
            return self.own
        installation = await self.installations.of(same_name(repo))
        if installation not in self._callers:
            self._callers[installation] = self._caller(self._as_ourselves)
        return self._for_repository(self._callers[installation], self.installations, same_name(repo))

    async def name(self) -> str:
        """Under which we comment."""
        return (await self.identity()).login

    async def identity(self) -> Identity:
        if self._identity is None and self.installations is not None:
            app = await self.own.get_now("/app", wire.AppPage)
            self._identity = app and Identity(f"{app.slug}[bot]", app.id)
        elif self._identity is None:
            user = await self.own.get_now("/user", wire.User)
            self._identity = user and Identity(user.login)
        if self._identity is None:
            raise HostTrouble(f"{self._access.name} does not tell who we are")
        return self._identity

    async def remote(self, repo: Repo) -> Remote:
        url = self._access.pages + place(repo).removeprefix("/repos") + ".git"
        return signed_in(url, GIT_USER, await self._git_password(repo))

    async def close(self) -> None:
        for caller in (self.own, *self._callers.values()):
            await caller.close()

    def _caller(self, headers: Headers) -> Caller:
        return Caller(self._access.api, headers, Limits(self._access.name, self._clock))

    async def _as_ourselves(self) -> Mapping[str, str]:
        return GITHUB | bearing(self._proof_of_ourselves())

    def _for_repository(self, installed: Caller, installations: Installations, repo: Repo) -> Caller:
        async def headers() -> Mapping[str, str]:
            return GITHUB | bearing(await installations.token(repo))

        def locked_out() -> None:
            installations.forget(repo)

        return installed.with_credentials(headers, locked_out)

    async def _git_password(self, repo: Repo) -> str:
        if self.installations is None:
            return self._proof_of_ourselves()
        return await self.installations.token(same_name(repo))

    def _proof_of_ourselves(self) -> str:
        match self._access:
            case Access(app=App() as app):
                return signed(app, self._clock.now())
            case Access(token=str(token)):
                return token
            case _:
                raise HostTrouble(f"{self._access.name} has neither a token nor an app: configure one of them")


def bearing(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}
