"""The page of the configured Git hosts, with a check for missing permissions, webhooks and settings."""

from collections.abc import Sequence

from msgspec import Struct
from starlette.responses import Response

from mergeyard.domain.ids import Repo
from mergeyard.ports.forge import ChecksFrom, Finding, Host, QueueSetup
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.repositories import describe_budgets, diagnose_host, read_queue_setup
from mergeyard.web.rendering import PageRequest

PROVIDER_NAMES = {"git": "local Git", "github": "GitHub", "gitlab": "GitLab", "gitea": "Gitea or Forgejo"}
CHECK_SOURCES = {
    ChecksFrom.API: "reported by CI over the API",
    ChecksFrom.RUN: "run by Mergeyard",
    ChecksFrom.HOST: "read from the Git host",
}


class HostCheck(Struct, frozen=True):
    """The result of checking a host; `error` if it could not be checked."""

    host: str
    repo: str
    findings: Sequence[Finding] = ()
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and all(finding.ok for finding in self.findings)


async def show(page: PageRequest) -> Response:
    return await _render(page, None)


async def check(page: PageRequest) -> Response:
    name, repo_text = page.form.get("host"), page.form.get("repo")
    try:
        host, repo = _resolve(page, name, repo_text)
    except RequestRefused as refused:
        return await _render(page, HostCheck(name, repo_text, error=refused.detail))
    return await _render(
        page, HostCheck(name, repo_text, await diagnose_host(host, repo, await _read_queues(page, repo)))
    )


async def _read_queues(page: PageRequest, repo: Repo | None) -> list[QueueSetup]:
    service = page.service
    actors = () if repo is None else await service.registry.load_by_repo(repo)
    return [await read_queue_setup(service.store, actor.queue, service.clock.now()) for actor in actors]


def _resolve(page: PageRequest, name: str, repo_text: str) -> tuple[Host, Repo | None]:
    repositories, token = page.service.repositories, page.user.token
    host = repositories.get_host(name, token)
    repo = repositories.canonical_repo(_parse_repo(host, repo_text)) if repo_text else None
    if token.repos and (repo is None or not token.can_access(repo)):
        raise RequestRefused(Code.INVALID_REQUEST, "Your token is limited to some repositories: name one of them.")
    return host, repo


def _parse_repo(host: Host, text: str) -> Repo:
    owner, _, name = text.removeprefix(f"{host.name}/").rpartition("/")
    if not owner or not name:
        raise RequestRefused(Code.INVALID_REQUEST, f"“{text[:100]}” is not a repository: write owner/name.")
    return Repo(host.name, owner, name)


async def _render(page: PageRequest, host_check: HostCheck | None) -> Response:
    """Each host, with its repositories that have a queue. A token that is limited to repositories sees only the hosts
    of these repositories."""
    token = page.user.token
    visible = {queue_actor.key.repo for queue_actor in await page.service.registry.list_visible(token)} | token.repos
    hosts = [
        (host, sorted((repo for repo in visible if repo.host == host.name), key=str))
        for host in page.service.repositories.hosts.values()
    ]
    return page.render_form(
        "admin/hosts.html",
        "" if host_check is None else host_check.error,
        hosts=[(host, repos) for host, repos in hosts if repos or not token.repos],
        host_check=host_check,
        budgets={host.name: () if token.repos else describe_budgets(host) for host, _ in hosts},
        provider_names=PROVIDER_NAMES,
        check_sources=CHECK_SOURCES,
    )
