"""Makes the commits that one pull request becomes on top of another commit, by the queue's merge method."""

from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct

from mergeyard.domain.config import MergeMethod
from mergeyard.domain.ids import RunId, Sha
from mergeyard.domain.runs import Member, Step
from mergeyard.ports.git import Commit, Conflict, Mirror, OutputTooLargeError
from mergeyard.service import wording
from mergeyard.service.grounding import ground, heads_beneath

MAX_REBASE_COMMITS = 100
"""Of one pull request, as GitHub has it: each costs a few processes, and every run does it again."""


TOO_MUCH_TO_READ = "Its commits and their messages are more than the service reads of one pull request."


class TooLarge(Struct, frozen=True):
    """It is over a limit; the words name the limit and say what to do."""

    words: str


class Stepper:
    def __init__(self, mirror: Mirror, method: MergeMethod, run: RunId, base: Sha) -> None:
        self._mirror = mirror
        self._method = method
        self._run = run
        self._base = base

    async def step(self, member: Member, title: str, onto: Sha) -> Step | Conflict | TooLarge:
        try:
            return await self._by_method(member, title, onto)
        except OutputTooLargeError:
            return TooLarge(TOO_MUCH_TO_READ)

    async def _by_method(self, member: Member, title: str, onto: Sha) -> Step | Conflict | TooLarge:
        match self._method:
            case MergeMethod.MERGE_COMMIT:
                return await self._merge(member, title, onto)
            case MergeMethod.SQUASH:
                return await self._squash(member, title, onto)
            case MergeMethod.REBASE:
                return await self._rebase(member, title, onto)
            case _:
                assert_never(self._method)

    async def _merge(self, member: Member, title: str, onto: Sha) -> Step | Conflict:
        tree = await self._mirror.merge(onto, member.head)
        if isinstance(tree, Conflict):
            return tree
        message = wording.merge_message(member.number, title, self._run)
        commit = await self._mirror.commit(tree, (onto, member.head), message)
        return Step(commit, onto, tree)

    async def _squash(self, member: Member, title: str, onto: Sha) -> Step | Conflict:
        tree = await self._mirror.merge(await ground(self._mirror, onto, await self._shas(member)), member.head)
        if isinstance(tree, Conflict):
            return tree
        message = wording.squash_message(member.number, title, self._run, member.head)
        author = (await self._mirror.read(member.head)).author
        commit = await self._mirror.commit(tree, (onto,), message, author)
        return Step(commit, onto, tree)

    async def _shas(self, member: Member) -> tuple[Sha, ...]:
        """What it brings, its head last."""
        return await self._mirror.shas(member.head, without=[self._base]) or (member.head,)

    async def _rebase(self, member: Member, title: str, onto: Sha) -> Step | Conflict | TooLarge:
        """Its own commits one by one; those whose change is there already are left out, and so are merges, unless one
        of them holds a change of its own: then all of it is one commit."""
        beneath = await heads_beneath(self._mirror, onto, await self._shas(member))
        without, limit = [self._base, *beneath], MAX_REBASE_COMMITS + 1
        commits = await self._mirror.commits(member.head, without=without, limit=limit, whole=True)
        if len(commits) > MAX_REBASE_COMMITS:
            return TooLarge(f"It has more than {MAX_REBASE_COMMITS} commits, the most that the queue rebases.")
        plain = [commit for commit in commits if len(commit.parents) == 1]
        step = await self._rebase_commits(member, title, onto, plain)
        if len(plain) == len(commits):
            return step
        squashed = await self._squash(member, title, onto)
        if isinstance(squashed, Conflict) or (isinstance(step, Step) and step.tree == squashed.tree):
            return step
        return squashed

    async def _rebase_commits(
        self, member: Member, title: str, onto: Sha, commits: Iterable[Commit]
    ) -> Step | Conflict:
        tip, tree = onto, await self._mirror.tree(onto)
        for commit in commits:
            picked = await self._mirror.pick(tip, commit.sha)
            if isinstance(picked, Conflict):
                return picked
            if picked == tree:
                continue
            message = wording.rebase_message(member.number, commit.message, self._run, member.head)
            tip, tree = await self._mirror.commit(picked, (tip,), message, commit.author), picked
        if tip == onto:
            message = wording.squash_message(member.number, title, self._run, member.head)
            tip = await self._mirror.commit(tree, (onto,), message)
        return Step(tip, onto, tree)


async def steps_of(mirror: Mirror, onto: Sha, tip: Sha, members: tuple[Member, ...]) -> tuple[Step, ...] | None:
    """What every member became in a chain that was made before, if this is the chain of these members."""
    commits = await mirror.first_parents(tip, down_to=onto)
    if commits is None:
        return None
    last = {wording.pull_request_of(commit.message): commit for commit in commits}
    if tuple(last) != tuple(member.number for member in members):
        return None
    steps, beneath = list[Step](), onto
    for commit in last.values():
        steps.append(Step(commit.sha, beneath, commit.tree))
        beneath = commit.sha
    return tuple(steps)
