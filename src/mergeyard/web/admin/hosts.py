"""The page of the configured Git hosts, with a check for missing permissions, webhooks and settings."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mergeyard.domain.access import Scope, Token
from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import ChecksFrom, Finding, Host
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.repositories import diagnose_host
from mergeyard.web.rendering import PageContext
from mergeyard.web.user_sessions import CurrentUser, read_user_form

PAGE = "/administration/hosts"
PROVIDER_NAMES = {"git": "plain repositories", "github": "GitHub", "gitlab": "GitLab", "gitea": "Gitea or Forgejo"}
CHECK_SOURCES = {
    ChecksFrom.API: "reported by CI over the API",
    ChecksFrom.RUN: "run by Mergeyard itself",
    ChecksFrom.HOST: "read from the Git host",
}


class HostRow(Struct, frozen=True):
    """A Git host with its repositories that have a queue."""

    name: str
    provider: str
    checks: str
    repos: tuple[Repo, ...]


class HostCheck(Struct, frozen=True):
    """The result of checking a host; `error` if it could not be checked."""

    host: str
    repo: str
    findings: Sequence[Finding] = ()
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and all(finding.ok for finding in self.findings)


class HostsPage:
    def __init__(self, context: PageContext) -> None:
        self._context = context

    def routes(self) -> Sequence[Route]:
        return (Route(PAGE, self.show, methods=["GET"]), Route(PAGE, self.check, methods=["POST"]))

    async def show(self, request: Request) -> Response:
        return await self._render(request, await self._context.authenticate(request, Scope.ADMIN), None)

    async def check(self, request: Request) -> Response:
        user = await self._context.authenticate(request, Scope.ADMIN)
        form = await read_user_form(user, request)
        name, repo_text = form.get("host"), form.get("repo")
        try:
            host, repo = self._resolve(user, name, repo_text)
        except RequestRefused as refused:
            return await self._render(request, user, HostCheck(name, repo_text, error=refused.detail))
        return await self._render(request, user, HostCheck(name, repo_text, await diagnose_host(host, repo)))

    def _resolve(self, user: CurrentUser, name: str, repo_text: str) -> tuple[Host, Repo | None]:
        repositories = self._context.service.repositories
        host = repositories.get_host(name, user.token)
        repo = repositories.canonical_repo(_parse_repo(host, repo_text)) if repo_text else None
        if user.token.repos and (repo is None or not user.token.can_access(repo)):
            raise RequestRefused(Code.INVALID_REQUEST, "Your token is limited to some repositories: name one of them.")
        return host, repo

    async def _render(self, request: Request, user: CurrentUser, host_check: HostCheck | None) -> Response:
        service = self._context.service
        repos = {queue_actor.key.repo for queue_actor in await service.registry.list_visible(user.token)}
        return self._context.render_form(
            request,
            "admin/hosts.html",
            user,
            "" if host_check is None else host_check.error,
            hosts=_build_rows(service.repositories.hosts.values(), repos | user.token.repos, user.token),
            host_check=host_check,
        )


def _build_rows(hosts: Iterable[Host], repos: Iterable[Repo], token: Token) -> list[HostRow]:
    """A token that is limited to repositories sees only the hosts of these repositories."""
    rows = [
        HostRow(
            name=host.name,
            provider=PROVIDER_NAMES.get(host.provider, host.provider),
            checks=CHECK_SOURCES[host.checks_from],
            repos=tuple(sorted((repo for repo in repos if repo.host == host.name), key=str)),
        )
        for host in hosts
    ]
    return [row for row in rows if row.repos or not token.repos]


def _parse_repo(host: Host, text: str) -> Repo:
    owner, _, name = text.removeprefix(f"{host.name}/").rpartition("/")
    if not owner or not name:
        raise RequestRefused(Code.INVALID_REQUEST, f"“{text[:100]}” is not a repository: write owner/name.")
    return Repo(host.name, owner, name)
