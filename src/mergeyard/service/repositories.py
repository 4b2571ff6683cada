"""Repository access for a queue: its actor, its Git host, its mirror, and diagnostics of the host."""

import asyncio
import re
from collections.abc import Mapping, Sequence

import structlog
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.access import Token
from mergeyard.domain.config import Config, HeadBranchFallback, LandingMethod, MergeMethod
from mergeyard.domain.ids import PullRequestNumber, QueueKey, Repo, RunId, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest, RequiredSource, RequiredStatuses
from mergeyard.domain.queue import Queue
from mergeyard.domain.runs import Member, Step
from mergeyard.domain.timestamps import MINUTE, Instant, format_clock, later
from mergeyard.engine import merging
from mergeyard.ports.external import Clock
from mergeyard.ports.forge import (
    Finding,
    Host,
    HostError,
    HostUnavailable,
    QueueSetup,
    RequestBudget,
    RequestPurpose,
    requests_for,
)
from mergeyard.ports.git import Git, Identity, Mirror, MissingObject, Signer
from mergeyard.ports.store import Store
from mergeyard.service import persistence
from mergeyard.service.background import Background
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.git_names import branch_ref
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.repo_config import InvalidConfig, parse_config, read_config_file

METHODS_WITH_OWN_COMMITS = (MergeMethod.SQUASH, MergeMethod.REBASE)


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

    async def read_pull_request(self, number: PullRequestNumber) -> PullRequest | None:
        """The pull request as its host shows it, with the requirements that concern what this queue merges."""
        config = self.queue_actor.queue.config
        needs_branch = config.delete_head_branches or self._moves_heads()
        found = await self.host.read_pull_request(self.repo, number, with_head_branch=needs_branch)
        if found is None:
            return None
        access = found.head_branch_access if needs_branch else HeadBranchAccess.UNKNOWN
        found = replace(found, head_branch_access=access)
        fallback = merging.fallback_of(config, found)
        by_host = config.landing is LandingMethod.PROVIDER_MERGE or fallback is HeadBranchFallback.PROVIDER_MERGE
        requirements = (each for each in found.requirements if each.applies_to(config.merge_method, by_host=by_host))
        return replace(found, requirements=tuple(requirements))

    def _moves_heads(self) -> bool:
        """Whether a landing can move head branches. A run keeps its methods when the settings change."""
        queue = self.queue_actor.queue
        methods = {(run.merge_method, run.landing_method) for run in queue.runs.values()}
        methods.add((queue.config.merge_method, queue.config.landing))
        return not methods.isdisjoint({(method, LandingMethod.TESTED_COMMIT) for method in METHODS_WITH_OWN_COMMITS})

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


DEFAULT_ADDRESS = "mergeyard@localhost"
ADDRESS_PATTERN = re.compile(r"[^<>@\s\x00-\x1f]{1,200}@[^<>@\s\x00-\x1f]{1,200}")
"""Other addresses would make a commit invalid."""
ADDRESS_TIMEOUT_S = 5.0
ADDRESS_RETRY_AFTER_S = 60.0
ADDRESS_REFRESH_AFTER_S = 600.0


class Repositories:
    def __init__(
        self,
        hosts: Mapping[str, Host],
        git: Git,
        identities: Mapping[str, Identity] = {},
        address_timeout_s: float = ADDRESS_TIMEOUT_S,
    ) -> None:
        """The identities, by host, are those of our commits. An identity without an address gets that of our account
        on the host. Without an identity, commits have the default one of `git`."""
        self.hosts = hosts
        self._git = git
        self._identities = identities
        self._address_timeout_s = address_timeout_s
        self._addresses: dict[str, str] = {}
        self._read_addresses_at: dict[str, float] = {}
        """When a host is asked again, by the clock of the event loop."""

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

    def signer_of(self, host: str) -> Signer | None:
        """The key that signs what we write to this host; None: nothing is signed."""
        return self._identities[host].signer if host in self._identities else None

    async def open_mirror(self, repo: Repo) -> Mirror:
        remote = await self.get_host(repo.host).remote(repo)
        return await self._git.mirror(str(repo), remote, await self._read_identity(repo))

    async def _read_identity(self, repo: Repo) -> Identity | None:
        """With the address that was last read if the host does not answer. Before the first answer only signed commits
        wait: with another address, a Git host with accounts does not accept the signature."""
        identity, now = self._identities.get(repo.host), asyncio.get_running_loop().time()
        if identity is None or identity.email:
            return identity
        host = self.hosts[repo.host]
        if now >= self._read_addresses_at.get(repo.host, now):
            try:
                async with asyncio.timeout(self._address_timeout_s):
                    found = await host.own_address(repo) or ""
                self._addresses[repo.host] = found if ADDRESS_PATTERN.fullmatch(found) else DEFAULT_ADDRESS
                self._read_addresses_at[repo.host] = now + ADDRESS_REFRESH_AFTER_S
            except (HostError, TimeoutError) as error:
                self._read_addresses_at[repo.host] = now + ADDRESS_RETRY_AFTER_S
                log.warning("own_address_not_read", host=repo.host, error=str(error))
        address = self._addresses.get(repo.host, DEFAULT_ADDRESS)
        if address == DEFAULT_ADDRESS and identity.signer is not None and host.forge is not None:
            self._read_addresses_at.pop(repo.host, None)
            raise HostUnavailable(
                f"{host.name} does not report the address of our account, which signed commits need. "
                "Set committer_email if this does not change"
            )
        return replace(identity, email=address)

    async def open_context(self, queue_actor: QueueActor) -> RepositoryContext:
        repo = queue_actor.key.repo
        return RepositoryContext(queue_actor, self.get_host(repo.host), await self.open_mirror(repo))


log = structlog.get_logger()

DIAGNOSTICS_TIMEOUT_S = 20.0
WARNINGS_REFRESH_AFTER_MS = 5 * MINUTE
"""Branch rules change rarely, and every open queue page asks for their warnings every few seconds."""
MAX_RUNS_READ = 20


class CachedWarnings(Struct, frozen=True):
    setup: QueueSetup
    read_at: Instant
    warnings: Sequence[str]


class BranchWarnings:
    """Warnings of the Git hosts about target branches, cached for pages that must not wait for a Git host."""

    def __init__(self, repositories: Repositories, clock: Clock, background: Background) -> None:
        self._repositories = repositories
        self._clock = clock
        self._background = background
        self._cached: dict[QueueKey, CachedWarnings] = {}

    def get_cached(self, key: QueueKey, config: Config) -> Sequence[str]:
        """Returns the cached warnings. Stale ones are read again in the background, for a later call."""
        setup = QueueSetup(
            branch=key.branch,
            merge_method=config.merge_method,
            landing=config.landing,
            head_branch_fallback=config.head_branch_fallback,
        )
        now, cached = self._clock.now(), self._cached.get(key)
        warnings = () if cached is None or cached.setup != setup else cached.warnings
        if cached is None or cached.setup != setup or now >= later(cached.read_at, WARNINGS_REFRESH_AFTER_MS):
            # Stored before the read, so that other page views do not start a second one.
            self._cached[key] = CachedWarnings(setup, now, warnings)
            self._background.start(self._read(key, setup))
        return warnings

    async def _read(self, key: QueueKey, setup: QueueSetup) -> None:
        """Keeps the cached warnings if the Git host does not answer."""
        forge = self._repositories.get_host(key.repo.host).forge
        if forge is None:
            return
        try:
            async with asyncio.timeout(DIAGNOSTICS_TIMEOUT_S):
                with requests_for(RequestPurpose.DISPLAY):
                    warnings = await forge.branch_warnings(key.repo, setup)
        except (HostError, TimeoutError) as error:
            log.warning("branch_warnings_unread", repo=str(key.repo), branch=key.branch, error=str(error))
            return
        self._cached[key] = CachedWarnings(setup, self._clock.now(), warnings)


async def read_queue_setup(store: Store, queue: Queue, now: Instant) -> QueueSetup:
    """The settings of a queue that depend on rules of the Git host, and the checks that CI reported to it.

    Only runs that needed the checks of these rules show whether CI reports them on test branches. A run that passed
    with the checks of a head shows nothing about test branches.
    """
    stored = await store.decided_runs(queue.id, Instant(0), now, MAX_RUNS_READ)
    runs = [persistence.decode_run(each.body) for each in stored]
    by_rules = [run for run in runs if run.required_statuses_source is RequiredSource.BRANCH_PROTECTION]
    reported = [frozenset(run.checks) for run in by_rules if not run.used_head_checks]
    names_checks = queue.config.required_statuses is not None or len(by_rules) < len(runs)
    return QueueSetup(
        branch=queue.target_branch.name,
        merge_method=queue.config.merge_method,
        landing=queue.config.landing,
        head_branch_fallback=queue.config.head_branch_fallback,
        reported_checks=frozenset[str]().union(*reported) if reported else None,
        needs_push_checks=not names_checks and not queue.config.create_prs_for_testing_branches,
    )


async def diagnose_host(
    host: Host, repo: Repo | None, queues: Sequence[QueueSetup] = (), timeout_s: float = DIAGNOSTICS_TIMEOUT_S
) -> Sequence[Finding]:
    """Checks what the service needs at the Git host, and in this repository for its queues if one is given."""
    try:
        async with asyncio.timeout(timeout_s):
            return [*await _collect_findings(host, repo, queues), *describe_budgets(host)]
    except TimeoutError:
        return [Finding(False, f"{host.name} did not answer within {timeout_s:g} seconds. Try again later.")]
    except HostError as error:
        return [Finding(False, f"{error}. Check the address of {host.name} in the settings, then try again.")]


LOW_BUDGET_DIVISOR = 5
"""Below a fifth, dialogs and progress in comments stop: see `KEPT_PERCENT` of the rate limits."""


def describe_budgets(host: Host) -> list[Finding]:
    """How many requests the Git host still accepts, of each account that sent one from this process."""
    if host.forge is None:
        return []
    return [_describe_budget(host.name, budget) for budget in host.forge.list_budgets()]


def _describe_budget(name: str, budget: RequestBudget) -> Finding:
    kind = "GraphQL queries" if budget.api == "graphql" else "requests"
    message = (
        f"{name} accepts {budget.remaining:,} of {budget.limit:,} {kind} ({budget.account}) "
        f"until {format_clock(budget.resets_at)}"
    )
    if budget.remaining * LOW_BUDGET_DIVISOR >= budget.limit:
        return Finding(True, f"{message}.")
    effect = "dialogs and progress in comments wait until then, and merges go on"
    return Finding(True, f"{message}: {effect}. If this is frequent, test batches.", advice=True)


async def _collect_findings(host: Host, repo: Repo | None, queues: Sequence[QueueSetup]) -> Sequence[Finding]:
    if host.forge is not None:
        return await host.forge.diagnose(repo, queues)
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
    except HostError as error:
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
