"""Creates a queue for a branch, and deletes one that is empty."""

from collections.abc import Iterable, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mergeyard.domain.config import Config
from mergeyard.domain.ours import BRANCHES
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.tokens import Scope, Token
from mergeyard.service import names
from mergeyard.service.errors import Code, Refused
from mergeyard.service.journaling import actor_of
from mergeyard.service.yard import queue_not_found
from mergeyard.web import addresses
from mergeyard.web.forms import Form, filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Visitor

BLAMED = {
    Code.HOST_NOT_ALLOWED: "host",
    Code.INVALID_REPO: "repo",
    Code.REPOSITORY_NOT_FOUND: "repo",
    Code.QUEUE_ALREADY_EXISTS: "branch",
    Code.BRANCH_NOT_FOUND: "branch",
    Code.INVALID_BRANCH: "branch",
}
"""Which field a refusal is about."""


class Founding:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (
            Route("/queues/new", self.ask, methods=["GET"]),
            Route("/queues/new", self.create, methods=["POST"]),
            Route("/actions/delete", self.delete, methods=["POST"]),
        )

    async def ask(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        return self._page(request, visitor, {}, {})

    async def create(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        form = await filled_in_by(visitor, request)
        try:
            key = self._named(visitor, form)
            await self._hall.service.queues.create(key, Config(), actor_of(visitor.token), lambda _: b"", None)
        except Refused as refused:
            if refused.code not in BLAMED:
                raise
            return self._page(request, visitor, form.values(), {BLAMED[refused.code]: refused.detail})
        return RedirectResponse(addresses.queue_page(key, "settings"), 303)

    async def delete(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        form = await filled_in_by(visitor, request)
        key = addresses.queue_named(form.get("queue"))  # as it is stored: its host may be configured no more
        if not visitor.token.sees(key.repo):
            raise queue_not_found(key)
        await self._hall.service.queues.delete(key, actor_of(visitor.token), b"", None)
        return RedirectResponse("/", 303)

    def _named(self, visitor: Visitor, form: Form) -> QueueKey:
        owner, _, name = form.get("repo").rpartition("/")
        if not (names.is_owner(owner) and names.is_part_of_a_repository(name)):
            raise Refused(Code.INVALID_REPO, "Give the owner and the name, such as acme/app.")
        if not names.is_target_branch(form.get("branch")):
            raise Refused(Code.INVALID_BRANCH, f"Give a branch that git takes, not below {BRANCHES}, such as main.")
        repo = self._hall.service.sites.repo(Repo(form.get("host"), owner, name), visitor.token)
        if not visitor.token.sees(repo):
            raise Refused(Code.REPOSITORY_NOT_FOUND, f"{repo} is not there: check its owner and name.")
        return QueueKey(repo, form.get("branch"))

    def _page(
        self, request: Request, visitor: Visitor, typed: Mapping[str, str], troubles: Mapping[str, str]
    ) -> Response:
        return self._hall.form(
            request,
            "founding.html",
            visitor,
            troubles,
            hosts=hosts_for(visitor.token, self._hall.service.sites.hosts),
            typed=typed,
            troubles=troubles,
        )


def hosts_for(reader: Token, hosts: Iterable[str]) -> list[str]:
    """Whoever is limited to some repositories sees only the hosts of those."""
    theirs = {repo.host for repo in reader.repos}
    return sorted(host for host in hosts if not theirs or host in theirs)
