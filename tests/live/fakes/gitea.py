"""The fake Gitea, with the requests of administrators."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from mergeyard.adapters.clock import WallClock
from tests.live.fakes.administration import OWNER, SECOND, Administration, Answer, Request, RequestLimiter
from tests.live.hosts import Access
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.forges.gitea.payloads import Payloads
from tests.support.http_server import Receive, Scope, Send, respond


class AdministeredGitea(FakeGitea):
    def __init__(self, root: Path) -> None:
        self.administration = Administration("/api/v1")
        self._renamed: dict[str, str] = {}
        super().__init__(root, WallClock())
        self.payloads = Payloads(self.world)
        self.administration.add("POST", "/user/repos", self._create)
        self.administration.add("DELETE", "/repos/*/*", self._delete)
        self.administration.add("PATCH", "/repos/*/*", self._rename)
        self.administration.add("DELETE", "/repos/*/*/branch_protections/*", self._unprotect)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        for old, new in self._renamed.items():
            if re.search(rf"/{re.escape(old)}(/|\.git/|$)", scope["path"].lower()):
                return await respond(send, 301, {"location": scope["path"].lower().replace(old, new, 1)})
        rest = await self.administration.answer(scope, receive, send)
        return None if rest is None else await super()._route(scope, rest, send)

    def _rename(self, request: Request) -> Answer | None:
        """Requests by the old name are redirected until another repository takes that name."""
        name = request.body.pop("name", None)
        if name is None:
            return None
        old, new = "/".join(request.params).lower(), f"{request.params[0]}/{name}".lower()
        repository = self.world.repositories[new] = self.world.repositories.pop(old)
        repository.name = name
        origin = self.world.git_server.origin(old).path
        repository.origin.path = origin.rename(origin.with_name(f"{name}.git"))
        self._renamed.pop(new, None)
        self._renamed[old] = new
        return 200, self.payloads.repository(repository, repository.owner)

    def _create(self, request: Request) -> None:
        """The fake has no private repositories."""
        request.body.pop("private", None)

    def _delete(self, request: Request) -> Answer:
        found = self.world.repositories.pop("/".join(request.params).lower(), None)
        return (204, None) if found else (404, {"message": "Not Found"})

    def _unprotect(self, request: Request) -> Answer:
        owner, name, _ = request.params
        self.world.repository(owner, name).rules.clear()
        return 204, None


@contextmanager
def fake_gitea(
    root: Path, like: Access | None = None, *, change: Callable[[AdministeredGitea], None] = lambda _: None
) -> Generator[Access]:
    """Like the real one: with a second account, or without. Tests can change the fake."""
    with AdministeredGitea(root) as gitea:
        change(gitea)
        tokens = [gitea.world.make_token(gitea.world.make_account(name, ""), "all") for name in (OWNER, SECOND)]
        second = tokens[1] if like is None or like.second_token else ""
        api_url = f"{gitea.url}/api/v1"
        limiter = RequestLimiter(gitea.faults, 429)
        yield Access(
            web_url=gitea.url, api_url=api_url, owner=OWNER, token=tokens[0], second_token=second, limiter=limiter
        )
