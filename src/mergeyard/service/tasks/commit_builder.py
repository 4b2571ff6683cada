"""Creates the commits of one pull request on top of another commit, by the queue's merge method."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.pull_requests import PullRequest, Submission
from mergeyard.domain.queue import LandedCommit
from mergeyard.domain.runs import Member, Step
from mergeyard.ports.forge import PullRequestText
from mergeyard.ports.git import Commit, Conflict, Mirror, MissingObject, OutputTooLargeError, Signature
from mergeyard.ports.store import Store
from mergeyard.service import git_names, landed_heads, persistence
from mergeyard.service.commit_messages import Squash, merge_message, rebase_message, sanitize_line, squash_message
from mergeyard.service.landed_heads import find_landed_heads, list_own_commits
from mergeyard.service.repo_config import CONFIG_FILE, InvalidConfig, parse_config, read_config_file
from mergeyard.service.repositories import RepositoryContext

MAX_REBASE_COMMITS = 100
"""Per pull request, the same limit as GitHub's. Each commit costs a few git processes, in every run."""


OUTPUT_TOO_LARGE_MESSAGE = "Its commits and commit messages are larger than the service reads for one pull request."


class PullRequestTooLarge(Struct, frozen=True):
    """The pull request exceeds a limit; the message names the limit and what to do."""

    message: str


class RebaseDiffers(Struct, frozen=True):
    """Git merges the head, but its commits one by one do not give the same files. The message names the difference."""

    message: str


NoStep = Conflict | PullRequestTooLarge | RebaseDiffers
"""Why a pull request does not become commits on top of another commit."""

MAX_DESCRIBED_COMMITS = 250
"""Of a longer pull request only the newest commits count for the message of its squash."""


async def write_squash(
    context: RepositoryContext, pull_request: PullRequest, run: str, base: Sha, onto: Sha
) -> tuple[str, Signature]:
    """Message and author of a squashed commit on top of `onto`. `base` is the tip of the target branch: it has the
    template of the repository, which counts before that of the queue."""
    host, mirror, head = context.host, context.mirror, pull_request.head
    text = await host.read_text(context.repo, pull_request.number)
    landed = await find_landed_heads(context, base, onto, await list_own_commits(mirror, head, base))
    commits = await read_own_commits(mirror, head, base, landed, limit=MAX_DESCRIBED_COMMITS)
    squash = Squash(
        number=pull_request.number,
        head=head,
        text=text or PullRequestText(title=pull_request.title),
        commits=[commit for commit in commits if len(commit.parents) < 2] or [await mirror.read_commit(head)],
        branch=pull_request.head_branch,
        base=context.queue_actor.key.branch,
        url=host.pull_request_url(context.repo, pull_request.number) or "",
        number_prefix=host.number_prefix,
    )
    config = parse_config(await read_config_file(mirror, base))
    of_repository = "" if isinstance(config, InvalidConfig) else config.squash_template
    return squash_message(squash, run, of_repository, context.queue_actor.queue.config.squash_template), squash.author


def pull_request_of(context: RepositoryContext, member: Member) -> PullRequest:
    """As the queue knows it, with the head of the member."""
    submission = context.queue_actor.queue.submissions.get(member.submission_id)
    if submission is None:
        return PullRequest(number=member.number, head=member.head, base_branch=context.queue_actor.key.branch)
    return replace(submission.pull_request, head=member.head)


async def read_own_commits(
    mirror: Mirror, head: Sha, base: Sha, landed: Sequence[Sha], *, limit: int, full_messages: bool = False
) -> tuple[Commit, ...]:
    """Without those of other pull requests up to these landed heads; the newest if there are many."""
    return await mirror.commits(head, without=[base, *landed], limit=limit, full_messages=full_messages)


@dataclass(frozen=True)
class MergeCommitBuilder:
    context: RepositoryContext
    method: MergeMethod
    run: RunId
    base: Sha
    pull_request: PullRequest | None = None
    """Of the only member, if it was read for this; None: as the queue knows it."""

    @property
    def mirror(self) -> Mirror:
        return self.context.mirror

    async def build_step(self, member: Member, onto: Sha) -> Step | NoStep:
        methods = {
            MergeMethod.MERGE_COMMIT: self._merge,
            MergeMethod.SQUASH: self._squash,
            MergeMethod.REBASE: self._rebase,
        }
        try:
            return await methods[self.method](member, onto)
        except OutputTooLargeError:
            return PullRequestTooLarge(OUTPUT_TOO_LARGE_MESSAGE)

    async def _merge(self, member: Member, onto: Sha) -> Step | Conflict:
        tree = await self.mirror.merge(onto, member.head)
        if isinstance(tree, Conflict):
            return tree
        title, prefix = self.context.title_of(member), self.context.host.number_prefix
        message = merge_message(member.number, title, self.run, prefix)
        commit = await self.mirror.commit(tree, (onto, member.head), message)
        return Step(commit, onto, tree)

    async def _squash(self, member: Member, onto: Sha) -> Step | Conflict:
        tree = await landed_heads.merge(self.context, onto, member.head, await self._find_landed_heads(member, onto))
        if isinstance(tree, Conflict):
            return tree
        return Step(await self._commit_squash(member, onto, tree), onto, tree)

    async def _commit_squash(self, member: Member, onto: Sha, tree: Sha) -> Sha:
        pull_request = self.pull_request or pull_request_of(self.context, member)
        message, author = await write_squash(self.context, pull_request, self.run, self.base, onto)
        return await self.mirror.commit(tree, (onto,), message, author)

    async def _find_landed_heads(self, member: Member, onto: Sha) -> tuple[Sha, ...]:
        commits = await list_own_commits(self.mirror, member.head, self.base)
        return await find_landed_heads(self.context, self.base, onto, commits)

    async def _rebase(self, member: Member, onto: Sha) -> Step | NoStep:
        """Rebases the commits one by one, without merge commits and without those whose change the base already has.

        The commits can bring another change than git's merge of the head, which no reviewer saw: a merge commit
        with a resolved conflict is left out, and a commit that reverts an earlier one removes the change of the target
        branch if that has it, too.
        """
        landed = await self._find_landed_heads(member, onto)
        commits = await read_own_commits(
            self.mirror, member.head, self.base, landed, limit=MAX_REBASE_COMMITS + 1, full_messages=True
        )
        if len(commits) > MAX_REBASE_COMMITS:
            return PullRequestTooLarge(
                f"The pull request has more than {MAX_REBASE_COMMITS} commits, the limit for rebasing."
            )
        whole = await landed_heads.merge(self.context, onto, member.head, landed)
        if isinstance(whole, Conflict):
            return whole
        step = await self._rebase_commits(member, onto, [commit for commit in commits if len(commit.parents) < 2])
        if isinstance(step, Conflict):
            return RebaseDiffers(f"Its commits conflict in {describe_paths(step)}; the merge does not.")
        if step.tree != whole:
            return RebaseDiffers(await self._describe_difference(whole, step.tree))
        return step

    async def _describe_difference(self, whole: Sha, rebased: Sha) -> str:
        paths = sorted(await self.mirror.changed_paths(whole, rebased))
        shown = Conflict(tuple(path.decode(errors="replace") for path in paths))
        return f"The two differ in {describe_paths(shown)}."

    async def _rebase_commits(self, member: Member, onto: Sha, commits: Iterable[Commit]) -> Step | Conflict:
        tip, tree = onto, await self.mirror.tree(onto)
        for commit in commits:
            tree_after = await self.mirror.cherry_pick(tip, commit.sha)
            if isinstance(tree_after, Conflict):
                return tree_after
            if tree_after == tree:
                continue
            message = rebase_message(member.number, commit.message, self.run, member.head)
            tip, tree = await self.mirror.commit(tree_after, (tip,), message, commit.author), tree_after
        if tip == onto:
            tip = await self._commit_squash(member, onto, tree)
        return Step(tip, onto, tree)


MAX_PATHS_SHOWN = 10


def describe_paths(conflict: Conflict) -> str:
    return ", ".join(sanitize_line(path) for path in conflict.paths[:MAX_PATHS_SHOWN])


async def read_steps(mirror: Mirror, onto: Sha, tip: Sha, members: tuple[Member, ...]) -> tuple[Step, ...] | None:
    """The step of every member in an existing chain; None if this is not the chain of these members."""
    commits = await mirror.first_parents(tip, down_to=onto)
    if commits is None:
        return None
    last = {git_names.parse_pull_request_trailer(commit.message): commit for commit in commits}
    if tuple(last) != tuple(member.number for member in members):
        return None
    parents = (onto, *(commit.sha for commit in last.values()))
    return tuple(Step(commit.sha, parent, commit.tree) for commit, parent in zip(last.values(), parents, strict=False))


async def find_tree_problems(context: RepositoryContext, head: Sha, base: Sha) -> str:
    """Problems of the head's tree that the base does not have: those of the base are not the pull request's fault."""
    found = await context.mirror.tree_problems(head, without=base)
    if not found:
        return ""
    known = await context.mirror.tree_problems(await context.mirror.tree(base), without=None)
    return "; ".join(sanitize_line(problem) for problem in found if problem not in known)


async def find_config_error(context: RepositoryContext, before: Sha, after: Sha) -> str:
    """The error in `.mergeyard.toml` if `after` changes that file. Merged, it would stop the queue for every pull
    request."""
    if await context.mirror.has_same_file(before, after, CONFIG_FILE):
        return ""
    config = parse_config(await read_config_file(context.mirror, after))
    return config.message if isinstance(config, InvalidConfig) else ""


async def contains_removed_commit(context: RepositoryContext, head: Sha, forbidden: frozenset[Sha]) -> bool:
    """Ignores commits that the target branch contains again, also as a squash or rebase."""
    if not forbidden:
        return False
    tip = await context.fetch_target_tip()
    commits = await context.mirror.commit_shas(head, without=[] if tip is None else [tip])
    if tip is None or forbidden.isdisjoint(commits):
        return not forbidden.isdisjoint(commits)
    landed = await find_landed_heads(context, tip, tip, commits)
    return not forbidden.isdisjoint(await context.mirror.commit_shas(head, without=[tip, *landed]))


async def find_removed_commits(
    context: RepositoryContext, store: Store, known_tip: Sha | None, tip: Sha
) -> frozenset[Sha]:
    """If the Git host no longer has the known tip, or it differs too much, only our own landings can be compared."""
    if known_tip is None or known_tip == tip:
        return frozenset()
    try:
        if not await context.has_commit(known_tip):  # this replica took over and never had the old tip
            await context.mirror.fetch_commit(known_tip)
        return await list_added_commits(context, store, known_tip, tip)
    except (MissingObject, OutputTooLargeError):
        removed = set[Sha]()
        for landed in context.queue_actor.queue.target_branch.history:
            if not await context.mirror.contains(tip, landed.commit):
                removed |= {landed.commit, *await _list_commits_of_landing(context, store, landed, tip)}
        return frozenset(removed)


async def list_added_commits(context: RepositoryContext, store: Store, tip: Sha, before: Sha) -> frozenset[Sha]:
    """The commits in `tip` but not in `before`. For a landing of this queue that is a squash or rebase also the pull
    request's own commits, which would bring the same change again."""
    commits = await context.mirror.commits(tip, without=[before])
    found = {commit.sha for commit in commits}
    for head in await _find_heads_of_landings(context, store, commits):
        found |= await _list_new_commits(context, head, before)
    return frozenset(found)


async def _find_heads_of_landings(
    context: RepositoryContext, store: Store, commits: Sequence[Commit]
) -> frozenset[Sha]:
    """Of the landings that this queue recorded. A forge's rebase writes no trailers, so the landings that the queue
    still holds are searched by their commits."""
    shas = {commit.sha for commit in commits}
    held = (landed for landed in context.queue_actor.queue.target_branch.history if landed.commit in shas)
    landings = [await landed_heads.find_landing(store, context.queue_actor.id, commit) for commit in commits]
    landings += [await _read_landing(context, store, landed) for landed in held]
    return frozenset(landing.pull_request.head for landing in landings if landing is not None)


async def _read_landing(context: RepositoryContext, store: Store, landed: LandedCommit) -> Submission | None:
    if landed.submission_id is None:
        return None
    return await persistence.read_submission(store, context.queue_actor.id, landed.submission_id)


async def _list_commits_of_landing(
    context: RepositoryContext, store: Store, landed: LandedCommit, tip: Sha
) -> frozenset[Sha]:
    submission = await _read_landing(context, store, landed)
    if submission is None:
        return frozenset()
    await context.fetch_head_if_missing(submission.number, submission.pull_request.head)
    return await _list_new_commits(context, submission.pull_request.head, tip)


async def _list_new_commits(context: RepositoryContext, head: Sha, tip: Sha) -> frozenset[Sha]:
    """Empty if the mirror lacks the head, or it has too many commits to list."""
    try:
        return frozenset(await context.mirror.commit_shas(head, without=[tip]))
    except (MissingObject, OutputTooLargeError):
        return frozenset()
