"""Reads pull requests: what the Git host reports, completed with what only git knows (which heads contain which).

What git finds out about two commits never changes, so each pair of head and tip is examined once.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping
from itertools import islice
from types import MappingProxyType
from weakref import WeakKeyDictionary

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import PullRequestNumber, Repo, Sha
from mergeyard.domain.pull_requests import HeadBranchAccess, PullRequest
from mergeyard.domain.states import Mergeability
from mergeyard.ports.forge import Host
from mergeyard.ports.git import Conflict, LimitExceededError, Mirror, MissingObject
from mergeyard.service import landed_heads
from mergeyard.service.git_names import branch_ref, is_target_branch
from mergeyard.service.queue_actor import QueueActor
from mergeyard.service.registry import QueueRegistry
from mergeyard.service.repo_config import parse_guarded_paths, read_config_file
from mergeyard.service.repositories import RepositoryContext

log = structlog.get_logger()

Heads = Mapping[PullRequestNumber, Sha]
NOTHING_REPORTED: Heads = MappingProxyType({})
"""Before the Git host has reported any heads."""


class HeadIndex(Struct, eq=False):
    """Filled by `refresh_heads`. Between refreshes, heads that were read from the Git host are added as unverified: it
    is not known yet which target branches contain them."""

    heads: dict[PullRequestNumber, Sha] = {}
    unverified: set[PullRequestNumber] = set()
    contained: dict[str, tuple[Sha, frozenset[Sha]]] = {}
    """By the ref of the target branch: its tip at the last refresh, and the heads that it contained then."""
    postponed: Heads | None = NOTHING_REPORTED
    """The heads that the Git host reported when a refresh was postponed; None: the index is refreshed."""
    too_large: dict[PullRequestNumber, Sha] = {}
    """The heads that git could not fetch within its limits. It can leave a part of their objects behind, so that the
    mirror seems to have them."""
    refresh_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One refresh at a time."""

    @property
    def known_numbers(self) -> Collection[PullRequestNumber] | None:
        """All pull requests of the repository, as far as the Git host reports them; None before the first report."""
        if self.postponed is None:
            return self.heads.keys()
        return None if self.postponed is NOTHING_REPORTED else self.unverified | self.postponed.keys()

    def find_unverified(self, heads: Heads) -> list[PullRequestNumber]:
        """The pull requests whose head is new, or not compared with the target branches yet."""
        return [number for number, head in self.select_fetchable(heads).items() if not self._is_verified(number, head)]

    def select_fetchable(self, heads: Heads) -> Heads:
        return {number: head for number, head in heads.items() if self.too_large.get(number) != head}

    def is_contained(self, target_ref: str, tip: Sha, number: PullRequestNumber, head: Sha) -> bool | None:
        """Whether the target branch contains the head; None if this was not determined for this tip and head."""
        compared_tip, contained = self.contained.get(target_ref, (None, ()))
        return head in contained if compared_tip == tip and self._is_verified(number, head) else None

    def note_unverified(self, number: PullRequestNumber, head: Sha) -> None:
        if self.heads.get(number) != head:
            self.heads[number] = head
            self.unverified.add(number)

    def record_refresh(
        self,
        found: Heads,
        contained: Mapping[str, tuple[Sha, frozenset[Sha]]],
        postponed: Heads | None = NOTHING_REPORTED,
    ) -> None:
        """Records the result of a refresh: every found head was compared with the target branches. `postponed` is what
        was postponed when it began: heads that were reported since then still have to be fetched."""
        self.heads.update(found)
        self.unverified -= found.keys()
        self.contained.update(contained)
        if self.postponed is postponed:
            self.postponed = None

    def forget_except(self, *retained: Collection[PullRequestNumber]) -> None:
        """Unverified pull requests stay too: they may be newer than the lists in `retained`."""
        for number in (self.heads.keys() - self.unverified).difference(*retained):
            del self.heads[number]
        for number in self.too_large.keys() - set[PullRequestNumber]().union(*retained):
            del self.too_large[number]

    def _is_verified(self, number: PullRequestNumber, head: Sha) -> bool:
        return self.heads.get(number) == head and number not in self.unverified


MAX_NEW_COMMITS = 1000
MAX_NEW_HEADS = 1000
"""With more new commits or heads than this, all heads are fetched or compared again in one command."""


async def refresh_heads(
    context: RepositoryContext, index: HeadIndex, target_refs: Collection[str], heads: Heads
) -> None:
    """`heads` are those that the Git host reports. A forge reports only open pull requests, so the pull requests of
    waiting submissions are kept too."""
    submissions = context.queue_actor.queue.submissions.values()
    submitted = {submission.number: submission.pull_request.head for submission in submissions}
    postponed = index.postponed
    new = index.find_unverified(heads)
    if postponed is not None:
        new = [*index.select_fetchable({**submitted, **heads})]
    refs = await _fetch_heads(context, index, target_refs, {**submitted, **heads}, new)
    found = {
        number: head for ref, head in refs.items() if (number := context.host.pull_request_number_of(ref)) is not None
    }
    contained = {
        target_ref: await _find_contained(context, index, target_ref, refs[target_ref], found)
        for target_ref in target_refs
        if target_ref in refs
    }
    index.record_refresh(found, contained, postponed)
    index.forget_except(heads, submitted, found)


async def _fetch_heads(
    context: RepositoryContext,
    index: HeadIndex,
    target_refs: Collection[str],
    heads: Heads,
    new: Collection[PullRequestNumber],
) -> Mapping[str, Sha]:
    """One pull request with objects that are too large for git must not keep the others from being fetched: then each
    head is fetched alone, and one that is too large not again."""
    is_many = index.postponed is not None or len(new) > MAX_NEW_HEADS
    fetches_all = context.host.forge is None and not index.too_large and is_many
    head_refs = [context.host.head_ref_pattern] if fetches_all else list(map(context.host.head_ref, new))
    try:
        return dict(await context.mirror.fetch([*head_refs, *target_refs]))
    except LimitExceededError:
        if not new:
            raise
    refs = dict(await context.mirror.fetch(target_refs))
    for number in new:
        try:
            refs |= await context.mirror.fetch([context.host.head_ref(number)])
        except LimitExceededError as error:
            log.warning("git_limit_exceeded", repo=str(context.repo), number=number, error=str(error))
            index.too_large[number] = heads[number]
    return refs


async def _find_contained(
    context: RepositoryContext, index: HeadIndex, target_ref: str, tip: Sha, found: Heads
) -> tuple[Sha, frozenset[Sha]]:
    before, contained = index.contained.get(target_ref, (None, frozenset[Sha]()))
    added = None if before is None else await _list_added_commits(context, before, tip)
    if added is None or len(found) > MAX_NEW_HEADS:
        return tip, await context.mirror.contained_heads(tip, [context.host.head_ref_pattern])
    new = await context.mirror.contained_heads(tip, [context.host.head_ref(number) for number in found])
    return tip, contained | new | frozenset(added).intersection(index.heads.values())


async def _list_added_commits(context: RepositoryContext, before: Sha, tip: Sha) -> Collection[Sha] | None:
    """None when the target branch was rewritten, or moved by too many commits."""
    if before == tip:
        return ()
    if not await context.mirror.contains(tip, before):
        return None
    commits = await context.mirror.commit_shas(tip, without=[before], limit=MAX_NEW_COMMITS)
    return commits if len(commits) < MAX_NEW_COMMITS else None


MAX_COMMITS = 250
"""Of a pull request: in a longer one only the newest are searched for the heads of other pull requests."""
MAX_GUARDED_SHOWN = 10
MAX_PATH_LENGTH = 200
"""Characters of a guarded path that are kept for messages."""
MAX_MERGE_BASES = 10
"""A crafted history can have many: with more of them the head is also compared with the tip itself."""


CHANGED_ACCESSES = (HeadBranchAccess.MOVABLE, HeadBranchAccess.NOT_MOVED)
"""The head branches that we move, or delete after the merge."""


class MergeFacts(Struct, frozen=True):
    """What git finds out about a head and a tip."""

    commits: tuple[Sha, ...]
    """Those that the head adds to the tip; the newest of them if there are many."""
    tree: Sha | None
    """Of the head merged into the tip; None when they conflict."""


class TipCache(Struct):
    """Everything that git found out about one tip; a new tip starts with an empty cache."""

    tip: Sha
    facts: dict[Sha, MergeFacts] = {}
    guards: tuple[str, ...] | None = None
    """The globs of guarded paths in the configuration file at the tip."""
    guarded: dict[Sha, tuple[str, ...]] = {}
    """Some of the guarded paths that a head changes. Only known for heads of forks, so not part of `MergeFacts`: a pull
    request of the same repository can have the same head."""

    def has(self, pull_request: PullRequest) -> bool:
        return pull_request.head in (self.guarded if pull_request.fork else self.facts)


class PullRequestReader:
    def __init__(self, registry: QueueRegistry | None = None) -> None:
        self._registry = registry
        self._caches = WeakKeyDictionary[QueueActor, TipCache]()
        self._head_indexes = defaultdict[Repo, HeadIndex](HeadIndex)

    async def read_from_host(
        self, context: RepositoryContext, number: PullRequestNumber
    ) -> tuple[PullRequest | None, bool]:
        """The pull request as the Git host reports it, without trying a merge, and whether that is complete."""
        pull_request = await self.read(context, number)
        tip = context.queue_actor.queue.target_branch.tip
        if pull_request is None or tip is None:
            return pull_request, True
        self._head_indexes[context.repo].note_unverified(number, pull_request.head)
        cache = self._cache_for(context.queue_actor, tip)
        if cache.has(pull_request):
            return self._complete(context, pull_request, cache), True
        contained = await self._is_contained(context, tip, pull_request)
        return replace(pull_request, is_in_target_branch=contained, mergeability=Mergeability.CHECKING), False

    async def read(self, context: RepositoryContext, number: PullRequestNumber) -> PullRequest | None:
        """Without asking git. The target branch of another queue is never moved, even if it is the head branch of a
        pull request."""
        found = await context.read_pull_request(number)
        if found is None or found.head_branch_access not in CHANGED_ACCESSES:
            return found
        owner, _, name = found.head_repo.rpartition("/")
        repo = replace(context.repo, owner=owner, name=name) if name else context.repo
        queue_actors = () if self._registry is None else await self._registry.load_by_repo(repo)
        is_target = any(each.key.branch == found.head_branch for each in queue_actors)
        is_shared = is_target or not is_target_branch(found.head_branch)
        return replace(found, head_branch_access=HeadBranchAccess.SHARED) if is_shared else found

    async def read_with_merge_check(self, context: RepositoryContext, number: PullRequestNumber) -> PullRequest | None:
        """The pull request with everything that a decision needs."""
        pull_request = await self.read(context, number)
        tip = context.queue_actor.queue.target_branch.tip
        if pull_request is None or tip is None:
            return pull_request
        if self._head_indexes[context.repo].postponed is not None:
            await self.refresh_head_index(context, {context.target_ref})
        cache, head = self._cache_for(context.queue_actor, tip), pull_request.head
        if not cache.has(pull_request):
            if not await context.has_commit(tip):
                await context.fetch_target_tip()
            try:
                await self._fetch_head(context, number, head)
                await self._fill_cache(context, cache, pull_request)
            except LimitExceededError as error:
                log.warning("git_limit_exceeded", repo=str(context.repo), number=number, head=head, error=str(error))
                return replace(pull_request, mergeability=Mergeability.UNKNOWN, exceeded_limit=f"{error}.")
        return self._complete(context, pull_request, cache)

    async def _fetch_head(self, context: RepositoryContext, number: PullRequestNumber, head: Sha) -> None:
        too_large = self._head_indexes[context.repo].too_large
        if too_large.get(number) == head:
            await context.mirror.fetch([context.host.head_ref(number)])
            too_large.pop(number, None)
            return
        try:
            await context.fetch_head_if_missing(number, head)
        except LimitExceededError:
            too_large[number] = head
            raise

    async def _fill_cache(self, context: RepositoryContext, cache: TipCache, pull_request: PullRequest) -> None:
        """What exceeded a limit is not kept: the engine decides whether it is tried again."""
        head = pull_request.head
        cache.facts[head] = facts = await _examine(context, cache.tip, head)
        if pull_request.fork:
            cache.guarded[head] = await _find_guarded_paths(context, cache, head, facts)

    async def refresh_head_index(
        self, context: RepositoryContext, target_refs: Collection[str], heads: Heads | None = None
    ) -> None:
        """Updates the index of heads, and which of them the target branches contain. Without `heads`, which the Git
        host reports, this happens only the first time and after `postpone_head_refresh`."""
        index = self._head_indexes[context.repo]
        async with index.refresh_lock:
            reported = index.postponed if heads is None else heads
            if reported is not None:
                await refresh_heads(context, index, target_refs, reported)

    def postpone_head_refresh(self, repo: Repo, heads: Heads) -> None:
        """Heads changed, but no submission needs the index: the next read of a pull request updates it."""
        self._head_indexes[repo].postponed = heads

    async def prune_unknown_heads(self, repo: Repo, host: Host, mirror: Mirror) -> None:
        """Drops from the mirror the heads of pull requests that the index no longer has."""
        index = self._head_indexes[repo]
        async with index.refresh_lock:
            known = index.known_numbers
            if known is not None:
                await mirror.prune_refs(
                    host.head_ref_pattern, keep=lambda ref: host.pull_request_number_of(ref) in known
                )

    def is_known_contained(self, queue_actor: QueueActor, number: PullRequestNumber, head: Sha) -> bool:
        """Whether the target branch contains the head, as far as that is known without asking git."""
        index, tip = self._head_indexes[queue_actor.key.repo], queue_actor.queue.target_branch.tip
        return tip is not None and index.is_contained(branch_ref(queue_actor.key.branch), tip, number, head) is True

    def _cache_for(self, queue_actor: QueueActor, tip: Sha) -> TipCache:
        cache = self._caches.get(queue_actor)
        if cache is None or cache.tip != tip:
            cache = self._caches[queue_actor] = TipCache(tip)
        return cache

    async def _is_contained(self, context: RepositoryContext, tip: Sha, pull_request: PullRequest) -> bool:
        """False while the mirror lacks the commits: a submission does not wait for a fetch."""
        number, head = pull_request.number, pull_request.head
        known = self._head_indexes[context.repo].is_contained(context.target_ref, tip, number, head)
        if known is not None:
            return known
        try:
            return await context.mirror.contains(tip, head)
        except MissingObject:
            return False

    def _complete(self, context: RepositoryContext, pull_request: PullRequest, cache: TipCache) -> PullRequest:
        """A Git host that reports mergeability overrides git."""
        facts, heads = cache.facts[pull_request.head], self._head_indexes[context.repo].heads
        commits = frozenset(facts.commits)
        contained = {number: head for number, head in heads.items() if head in commits}
        contained.pop(pull_request.number, None)
        mergeability = pull_request.mergeability if context.host.reports_mergeability else Mergeability.UNKNOWN
        if mergeability is Mergeability.UNKNOWN:
            mergeability = Mergeability.NOT_MERGEABLE if facts.tree is None else Mergeability.MERGEABLE
        return replace(
            pull_request,
            is_in_target_branch=not commits,
            mergeability=mergeability,
            contained_heads=contained,
            guarded_paths=cache.guarded[pull_request.head] if pull_request.fork else None,
        )


async def _examine(context: RepositoryContext, tip: Sha, head: Sha) -> MergeFacts:
    """Merge commits contain the heads that they merged; squashed and rebased commits do not."""
    commits = await landed_heads.list_own_commits(context.mirror, head, tip, limit=MAX_COMMITS)
    landed: tuple[Sha, ...] = ()
    if context.queue_actor.queue.config.merge_method is not MergeMethod.MERGE_COMMIT:
        landed = await landed_heads.find_landed_heads(context, tip, tip, commits)
    merged = await landed_heads.merge(context, tip, head, landed)
    return MergeFacts(commits, None if isinstance(merged, Conflict) else merged)


async def _find_guarded_paths(
    context: RepositoryContext, cache: TipCache, head: Sha, facts: MergeFacts
) -> tuple[str, ...]:
    """Compares the head with every merge base, and the merged tree with the tip: a merge follows renames, so it can
    change a guarded file that the head has under another name."""
    mirror, tip = context.mirror, cache.tip
    if cache.guards is None:
        cache.guards = parse_guarded_paths(await read_config_file(mirror, tip))
    all_bases = await mirror.merge_bases(tip, head)
    bases = all_bases[:MAX_MERGE_BASES]
    if not all_bases or len(all_bases) > MAX_MERGE_BASES:
        bases = (*bases, tip)
    changes = [(base, head) for base in bases] + ([(tip, facts.tree)] if facts.tree else [])
    found = dict[str, None]()
    for before, after in changes:
        found |= dict.fromkeys(await mirror.changed_paths_matching(before, after, cache.guards))
    return tuple(path[:MAX_PATH_LENGTH] for path in islice(found, MAX_GUARDED_SHOWN))
