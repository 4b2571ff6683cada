"""Hosts: which there are, and whether everything is there that the service needs."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.repositories import Repo
from mergeyard.domain.tokens import Scope, Token
from mergeyard.ports.forge import Finding
from mergeyard.ports.host import ChecksFrom, Host
from mergeyard.service.errors import Code, Refused
from mergeyard.service.examining import examined
from mergeyard.web.forms import filled_in_by
from mergeyard.web.hall import Hall
from mergeyard.web.visiting import Visitor

PAGE = "/administration/hosts"
PROVIDERS = {"git": "plain repositories", "github": "GitHub", "gitlab": "GitLab", "gitea": "Gitea or Forgejo"}
CHECKS = {
    ChecksFrom.API: "reported by CI over the API",
    ChecksFrom.RUN: "run by Mergeyard itself",
    ChecksFrom.HOST: "read from the host",
}


class HostLine(Struct, frozen=True):
    """A host with the repositories there that have a queue."""

    name: str
    provider: str
    checks: str
    repos: tuple[Repo, ...]


class Examination(Struct, frozen=True):
    host: str
    repo: str
    findings: Sequence[Finding] = ()
    trouble: str = ""

    @property
    def fine(self) -> bool:
        return not self.trouble and all(finding.fine for finding in self.findings)


class HostsPage:
    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def routes(self) -> Sequence[Route]:
        return (Route(PAGE, self.show, methods=["GET"]), Route(PAGE, self.examine, methods=["POST"]))

    async def show(self, request: Request) -> Response:
        return await self._page(request, await self._hall.visitor(request, Scope.ADMIN), None)

    async def examine(self, request: Request) -> Response:
        visitor = await self._hall.visitor(request, Scope.ADMIN)
        form = await filled_in_by(visitor, request)
        name, repo = form.get("host"), form.get("repo")
        try:
            host, named = self._meant(visitor, name, repo)
        except Refused as refused:
            return await self._page(request, visitor, Examination(name, repo, trouble=refused.detail))
        return await self._page(request, visitor, Examination(name, repo, await examined(host, named)))

    def _meant(self, visitor: Visitor, name: str, text: str) -> tuple[Host, Repo | None]:
        sites = self._hall.service.sites
        host = sites.host(name, visitor.token)
        named = sites.repo(repo_at(host, text)) if text else None
        if visitor.token.repos and (named is None or not visitor.token.sees(named)):
            raise Refused(Code.INVALID_REQUEST, "Your token is limited to some repositories: name one of those.")
        return host, named

    async def _page(self, request: Request, visitor: Visitor, examination: Examination | None) -> Response:
        service = self._hall.service
        repos = {keeper.key.repo for keeper in await service.yard.seen_by(visitor.token)}
        return self._hall.form(
            request,
            "administration/hosts.html",
            visitor,
            "" if examination is None else examination.trouble,
            hosts=host_lines(service.sites.hosts.values(), repos | visitor.token.repos, visitor.token),
            examination=examination,
        )


def host_lines(hosts: Iterable[Host], repos: Iterable[Repo], reader: Token) -> list[HostLine]:
    """Whoever is limited to some repositories sees only the hosts of those."""
    lines = [
        HostLine(
            name=host.name,
            provider=PROVIDERS.get(host.provider, host.provider),
            checks=CHECKS[host.checks_from],
            repos=tuple(sorted((repo for repo in repos if repo.host == host.name), key=str)),
        )
        for host in hosts
    ]
    return [line for line in lines if line.repos or not reader.repos]


def repo_at(host: Host, text: str) -> Repo:
    owner, _, name = text.removeprefix(f"{host.name}/").rpartition("/")
    if not owner or not name:
        raise Refused(Code.INVALID_REQUEST, f"“{text[:100]}” names no repository: write owner/name.")
    return Repo(host.name, owner, name)
