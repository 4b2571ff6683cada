"""Repository access for a queue: its actor, its Git host, its mirror, and diagnostics of the host."""

import asyncio
from collections.abc import Mapping, Sequence

import structlog
from msgspec import Struct

from mergeyard.domain.access import Token
from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, Sha
from mergeyard.domain.pull_requests import RequiredSource, RequiredStatuses
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.timestamps import MINUTE, Instant, later
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import Finding, Host, HostUnavailable
from mergeyard.ports.git import Git, Mirror, MissingObject
from mergeyard.service.background import Background
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import branch_ref
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.repo_config import InvalidConfig, parse_config, read_config_file


class RepositoryContext(Struct, frozen=True, eq=False):
    queue_actor: QueueActor
    host: Host
    mirror: Mirror

    @property
    def repo(self) -> Repo:
        return self.queue_actor.key.repo

    @property
    def target_ref(self) -> str:
        return branch_ref(self.queue_actor.key.branch)

    def title_of(self, member: Member) -> str:
        submission = self.queue_actor.queue.submissions.get(member.submission_id)
        return "" if submission is None else submission.pull_request.title

    def merge_method_of(self, run_id: RunId | None) -> MergeMethod:
        """The method that the run was built with; without a run, the current setting."""
        queue = self.queue_actor.queue
        run = None if run_id is None else queue.runs.get(run_id)
        return queue.config.merge_method if run is None else run.merge_method

    async def fetch_target_tip(self) -> Sha | None:
        """Fetches the target branch and returns its tip; None when the Git host has no such branch."""
        return (await self.mirror.fetch([self.target_ref])).get(self.target_ref)

    async def fetch_head_if_missing(self, number: PullRequestNumber, head: Sha) -> None:
        """Fetches the head unless the mirror has it: another replica may have observed it with its own mirror."""
        if not await self.has_commit(head):
            await self.mirror.fetch([self.host.head_ref(number)])

    async def has_commit(self, commit: Sha) -> bool:
        try:
            await self.mirror.tree(commit)
        except MissingObject:
            return False
        return True


class Repositories:
    def __init__(self, hosts: Mapping[str, Host], git: Git) -> None:
        self.hosts = hosts
        self._git = git

    def get_host(self, name: str, token: Token | None = None) -> Host:
        """A host on which the token has no repository is refused exactly like one that is not configured."""
        found = self.hosts.get(name)
        if found is None or (token is not None and not token.can_access_host(name)):
            raise RequestRefused(Code.HOST_NOT_ALLOWED, f"The host {name[:100]} is not configured: check its name.")
        return found

    def canonical_repo(self, named: Repo, token: Token | None = None) -> Repo:
        """The repository in the spelling of its Git host."""
        host = self.get_host(named.host, token)
        if "/" in named.owner and not host.has_groups:
            raise RequestRefused(Code.INVALID_REPO, f"{host.name} has no nested groups: give an owner without a slash.")
        return host.canonical_repo(named)

    async def open_mirror(self, repo: Repo) -> Mirror:
        return await self._git.mirror(str(repo), await self.get_host(repo.host).remote(repo))

    async def open_context(self, queue_actor: QueueActor) -> RepositoryContext:
        repo = queue_actor.key.repo
        return RepositoryContext(queue_actor, self.get_host(repo.host), await self.open_mirror(repo))


log = structlog.get_logger()

DIAGNOSTICS_TIMEOUT_S = 20.0
WARNINGS_REFRESH_AFTER_MS = 5 * MINUTE
"""Branch rules change rarely, and every open queue page asks for their warnings every few seconds."""


class BranchWarnings:
    """Warnings of the Git hosts about target branches, cached for pages that must not wait for a Git host."""

    def __init__(self, repositories: Repositories, clock: Clock, background: Background) -> None:
        self._repositories = repositories
        self._clock = clock
        self._background = background
        self._cached: dict[QueueKey, tuple[Instant, Sequence[str]]] = {}
        """Each with the time of its last read."""

    def get_cached(self, key: QueueKey) -> Sequence[str]:
        """Returns the cached warnings. Stale ones are read again in the background, for a later call."""
        now = self._clock.now()
        read_at, warnings = self._cached.get(key, (None, ()))
        if read_at is None or now >= later(read_at, WARNINGS_REFRESH_AFTER_MS):
            # Stamped before the read, so that other page views do not start a second one.
            self._cached[key] = (now, warnings)
            self._background.start(self._read(key))
        return warnings

    async def _read(self, key: QueueKey) -> None:
        """Keeps the cached warnings if the Git host does not answer."""
        forge = self._repositories.get_host(key.repo.host).forge
        if forge is None:
            return
        try:
            async with asyncio.timeout(DIAGNOSTICS_TIMEOUT_S):
                warnings = await forge.branch_warnings(key.repo, key.branch)
        except (HostUnavailable, TimeoutError) as error:
            log.warning("branch_warnings_unread", repo=str(key.repo), branch=key.branch, error=str(error))
            return
        self._cached[key] = (self._clock.now(), warnings)


async def diagnose_host(host: Host, repo: Repo | None, timeout_s: float = DIAGNOSTICS_TIMEOUT_S) -> Sequence[Finding]:
    """Checks what the service needs at the Git host, and in this repository if one is given."""
    try:
        async with asyncio.timeout(timeout_s):
            return await _collect_findings(host, repo)
    except TimeoutError:
        return [Finding(False, f"{host.name} did not answer within {timeout_s:g} seconds. Try again later.")]
    except HostUnavailable as error:
        return [Finding(False, f"{error}. Check the address of {host.name} in the settings, then try again.")]


async def _collect_findings(host: Host, repo: Repo | None) -> Sequence[Finding]:
    if host.forge is not None:
        return await host.forge.diagnose(repo)
    if repo is None:
        return [Finding(True, f"{host.name} is a folder of plain Git repositories and needs no further setup.")]
    if await host.has_repository(repo):
        return [Finding(True, f"{repo} exists.")]
    return [Finding(False, f"There is no repository {repo}. Create it below the root folder of {host.name}.")]


async def mark_merged(context: RepositoryContext, members: Sequence[Member], steps: Sequence[Step]) -> None:
    """Failures are only logged: the commits are on the target branch, and `MergeMarker` tries again from the
    journal."""
    await asyncio.gather(*(_mark_one(context, member, step) for member, step in zip(members, steps, strict=False)))


async def _mark_one(context: RepositoryContext, member: Member, step: Step) -> None:
    try:
        await context.host.mark_merged(context.repo, member.number, member.head, step.commit)
    except HostUnavailable as error:
        log.warning("pull_request_not_marked_merged", repo=str(context.repo), number=member.number, error=str(error))


async def read_required_statuses(context: RepositoryContext, tip: Sha) -> RequiredStatuses:
    """The required checks from `.mergeyard.toml` at the tip, else from the branch protection of the Git host."""
    text = await read_config_file(context.mirror, tip)
    if text is not None:
        config = parse_config(text)
        if isinstance(config, InvalidConfig):
            return RequiredStatuses(config_error=config.message)
        if config.required_statuses:
            return RequiredStatuses(config.required_statuses, RequiredSource.SERVICE_CONFIG)
    protection = await context.host.required_statuses(context.repo, context.queue_actor.key.branch)
    return RequiredStatuses(protection, RequiredSource.BRANCH_PROTECTION)
