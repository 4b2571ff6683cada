"""The page of one pull request: where it stands and why, what it needs, and all that happened to it."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.ids import PrNumber, Ticket
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.service.errors import Code, Refused
from mergeyard.web import addresses
from mergeyard.web.hall import Hall
from mergeyard.web.pulls.shown import shown
from mergeyard.web.visiting import Visitor

MOST = 2**31 - 1
MOST_DIGITS = 18


class PullPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._service = hall.service

    def routes(self) -> Sequence[Route]:
        return (Route("/pulls/{repo:path}/{number}", self.show),)

    async def show(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request)
        repo = self._repo(visitor, request.path_params["repo"])
        number = number_in(request.path_params["number"])
        branch = request.query_params.get("branch")
        try:
            key = QueueKey(repo, branch) if branch else await self._service.dossiers.queue_of(repo, number)
            if key is None:
                return await self._never_submitted(request, visitor, repo, number)
            return await self._file(request, visitor, key, number)
        except Refused as refused:
            if refused.code is not Code.PR_NOT_SUBMITTED or "hx-request" in request.headers:
                raise
            return await self._never_submitted(request, visitor, repo, number)

    async def _file(self, request: Request, visitor: Visitor, key: QueueKey, number: PrNumber) -> Response:
        asked = request.query_params
        dossier = await self._service.dossiers.open(key, number, ticket_in(asked.get("stay", "")))
        source = self._service.sites.host(key.repo.host).checks_from
        page = shown(dossier, source, self._service.clock.now(), count_in(asked.get("first", "")))
        return self._hall.page(request, "pull.html", visitor, shown=page)

    async def _never_submitted(self, request: Request, visitor: Visitor, repo: Repo, number: PrNumber) -> Response:
        queues = await self._service.dossiers.queues(repo)
        if not queues:
            raise no_queue(repo)
        outside = self._service.sites.host(repo.host).pull_page(repo, number)
        context = {"queues": queues, "repo": repo, "number": number, "outside": outside}
        return self._hall.answer(request, "pull_unknown.html", 404, visitor=visitor, **context)

    def _repo(self, visitor: Visitor, text: str) -> Repo:
        repo = self._service.sites.repo(addresses.repo_named(text), visitor.token)
        if not visitor.token.sees(repo):
            raise no_queue(repo)
        return repo


def number_in(text: str) -> PrNumber:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(MOST)) and 0 < int(text) <= MOST):
        raise addresses.nothing_here()
    return PrNumber(int(text))


def ticket_in(text: str) -> Ticket | None:
    """The stay that is asked for; None: the latest."""
    ticket = count_in(text)
    return None if ticket is None else Ticket(ticket)


def count_in(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None


def no_queue(repo: Repo) -> Refused:
    return Refused(
        Code.QUEUE_NOT_FOUND, f"No branch of {repo} has a queue. The queues page lists all that you may see."
    )
