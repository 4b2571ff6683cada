"""What happens in a real repository over months: merges are reverted and land again, commits are picked for releases,
release branches are merged back, branches are used again, and messages of commits contain anything."""

from collections.abc import Callable, Sequence
from random import Random
from subprocess import CalledProcessError
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.campaign.contents import changes, snapshot
from tests.campaign.people import People, ProposedPullRequest, clean_merge
from tests.campaign.scenario import CampaignScenario
from tests.support.host_log import TEST_BRANCH_PREFIX
from tests.support.repositories import Content, Origin

RECENT = 8
"""So many of the last merges can be reverted or picked."""
PUSHES = 0.05
"""How often people push directly, compared with how often they open such pull requests."""
TRAILERS = ("Pull-Request", "Run", "Head")
SCRATCH = "refs/scratch/life"
Way = TypeVar("Way")


class MergedChange(Struct, frozen=True):
    """What one pull request, or one push, added to a branch: one commit, or several if it was rebased."""

    before: Sha
    last: Sha
    number: int | None
    message: str


class Life:
    def __init__(self, scenario: CampaignScenario, people: People, chance: Random, rate: float) -> None:
        self.done: list[str] = []
        """What was pushed, as the report names it."""
        self.shared = set[int]()
        """The pull requests whose head branches belong to others too."""
        self._scenario = scenario
        self._origin: Origin = scenario.origin
        self._people = people
        self._chance = chance
        self._rate = rate
        self._heads = dict[int, Sha]()
        """The heads that the pull requests were opened with."""
        self._reverted = list[int]()
        """The pull requests that were reverted, and that have not been opened again since."""

    def propose(self, number: int) -> ProposedPullRequest:
        """Opens a pull request as it occurs in a life, or, if nothing has happened that it could be about, another."""
        proposal = self._proposed(number) if self._chance.random() < self._rate else None
        if proposal is None:
            proposal = self._people.create_pull_request(number)
        self._people.pull_requests[number] = proposal
        self._heads[number] = self._origin.tip(proposal.branch)
        return proposal

    def push(self) -> None:
        """A push to a branch that has a queue."""
        if self._chance.random() >= self._rate * PUSHES:
            return
        ways: dict[Callable[[str], str | None], int] = {
            self._push_revert: 4,
            self._push_forged_trailers: 4,
            self._push_picked: 2,
            self._push_merge: 1,
            self._rebase_by_host: 3,
        }
        done = self._chosen(ways)(self._chance.choice(self._targets))
        if done is not None:
            self.done.append(done)

    @property
    def _targets(self) -> Sequence[str]:
        return self._scenario.targets

    def _proposed(self, number: int) -> ProposedPullRequest | None:
        ways: dict[Callable[[int], ProposedPullRequest | None], int] = {
            self._revert: 3,
            self._land_again: 5,
            self._use_branch_again: 2,
            self._stack_on_merged: 2,
            self._odd_history: 3,
        }
        if len(self._targets) > 1:
            ways |= {self._pick: 3, self._merge_target: 4, self._fix_release: 2, self._propose_elsewhere: 1}
        return self._chosen(ways)(number)

    # Pull requests.

    def _revert(self, number: int) -> ProposedPullRequest | None:
        target = self._chance.choice(self._targets)
        merged = self._random_merged(target)
        commit = merged and self._commit_revert(merged, self._origin.tip(target))
        if merged is None or commit is None:
            return None
        self._note_reverted(merged)
        return self._opened(number, f"undo{number}", commit, {"revert of a merge"}, base=target)

    def _land_again(self, number: int) -> ProposedPullRequest | None:
        """The same commits, mostly with a correction on top."""
        if not self._reverted:
            return None
        before = self._people.pull_requests[self._reverted.pop(self._chance.randrange(len(self._reverted)))]
        branch = self._free_branch_of(before) if self._chance.random() < 0.3 else f"again{number}"
        kinds = {"lands again"}
        self._origin.set_ref(branch, self._heads[before.number])
        if self._chance.random() < 0.8:
            kinds.add(self._people.commit_change(branch))
        return self._opened(number, branch, self._origin.tip(branch), kinds, base=before.base)

    def _use_branch_again(self, number: int) -> ProposedPullRequest | None:
        """Its author goes on where the branch is, or in a clone that has only what was pushed before the merge."""
        before = self._random_merged_pull_request()
        if before is None:
            return None
        tip = self._origin.ref(before.branch)
        start = tip if tip is not None and self._chance.random() < 0.5 else self._heads[before.number]
        branch = self._free_branch_of(before) if self._chance.random() < 0.6 else f"renamed{number}"
        self._origin.set_ref(branch, start)
        kinds = {"branch used again", self._people.commit_change(branch)}
        return self._opened(number, branch, self._origin.tip(branch), kinds, base=before.base)

    def _stack_on_merged(self, number: int) -> ProposedPullRequest | None:
        """Stacked on the commits of one that merged, or of one that is about to."""
        if not self._heads:
            return None
        below = self._chance.choice(sorted(self._heads))
        branch = f"above{number}"
        self._origin.set_ref(branch, self._heads[below])
        kinds = {"stacked on old commits", self._people.commit_change(branch)}
        base = self._people.pull_requests[below].base
        return self._opened(number, branch, self._origin.tip(branch), kinds, base=base)

    def _odd_history(self, number: int) -> ProposedPullRequest | None:
        base, branch = self._chance.choice(self._targets), f"odd{number}"
        self._origin.branch(branch, base=self._old_commit(base))
        kinds = {self._people.commit_change(branch)}
        ways = (self._change_and_revert, self._resolve_merge, self._keep_ours, self._empty_commits, self._forge_message)
        for way in self._chance.sample(ways, self._chance.choice((1, 1, 2))):
            kinds.add(way(branch, base))
        return self._opened(number, branch, self._origin.tip(branch), kinds, base=base)

    def _pick(self, number: int) -> ProposedPullRequest | None:
        source, target = self._chance.sample(self._targets, 2)
        merged = self._random_merged(source)
        commit = merged and self._commit_picked(merged, self._origin.tip(target))
        if commit is None:
            return None
        return self._opened(number, f"pick{number}", commit, {"picked from another branch"}, base=target)

    def _merge_target(self, number: int) -> ProposedPullRequest | None:
        """A back-merge or a forward-merge: from the branch itself, or from a branch that was made for it."""
        source, target = self._chance.sample(self._targets, 2)
        if self._chance.random() < 0.15:
            self.shared.add(number)
            return self._opened(number, source, self._origin.tip(source), {"a target branch as head"}, base=target)
        branch, kinds = f"sync{number}", {"merge of a target branch"}
        self._origin.set_ref(branch, self._origin.tip(source))
        if self._chance.random() < 0.5:
            kinds.add(self._resolve_merge(branch, target))
        return self._opened(number, branch, self._origin.tip(branch), kinds, base=target)

    def _fix_release(self, number: int) -> ProposedPullRequest | None:
        base, branch = self._chance.choice(self._targets[1:]), f"fix{number}"
        self._origin.branch(branch, base=base)
        return self._opened(
            number,
            branch,
            self._origin.tip(branch),
            {"fix of a release", self._people.commit_change(branch)},
            base=base,
        )

    def _propose_elsewhere(self, number: int) -> ProposedPullRequest | None:
        """The branch of another pull request, for another target branch. A branch that two of them share stays where it
        is."""
        others = [each for each in self._people.pull_requests.values() if self._origin.ref(each.branch) is not None]
        if not others:
            return None
        other = self._chance.choice(others)
        self.shared |= {number, other.number}
        base = self._chance.choice([target for target in self._targets if target != other.base])
        tip = self._origin.tip(other.branch)
        return self._opened(number, other.branch, tip, {"for several branches", *other.kinds}, base=base)

    def _opened(self, number: int, branch: str, head: Sha, kinds: set[str], *, base: str) -> ProposedPullRequest:
        self._origin.set_ref(branch, head)
        return ProposedPullRequest(number, branch, frozenset(kinds), None, base)

    def _free_branch_of(self, merged: ProposedPullRequest) -> str:
        """Its branch, once no open pull request has it."""
        same = [each for each in self._people.pull_requests.values() if each.branch == merged.branch]
        if merged.branch in self._targets or any(self._is_open(each) for each in same):
            return f"{merged.branch}-more"
        self.shared |= {each.number for each in same}
        return merged.branch

    # Commits inside a pull request.

    def _change_and_revert(self, branch: str, base: str) -> str:  # noqa: ARG002
        before = self._origin.tip(branch)
        self._people.commit_change(branch)
        changed = self._origin.tip(branch)
        if self._chance.random() < 0.5:
            self._people.commit_change(branch)
        tree = three_way(self._origin, base=changed, ours=self._origin.tip(branch), theirs=before)
        if tree is not None:
            self._commit(branch, tree, "Revert the change")
        return "change and its revert"

    def _resolve_merge(self, branch: str, base: str) -> str:
        """A merge whose conflicts, if any, the author resolved."""
        ours, theirs = self._origin.tip(branch), self._origin.tip(base)
        files = changes(snapshot(self._origin, ours), resolved(self._origin, ours, theirs, self._chance))
        self._origin.commit(branch, files, message=f"Merge {base}", merging=theirs)
        return "resolved merge"

    def _keep_ours(self, branch: str, base: str) -> str:
        """A merge that keeps nothing of what it merges."""
        parents = (self._origin.tip(branch), self._origin.tip(base))
        self._commit(branch, self._origin.tree(branch), f"Merge {base}", parents)
        return "merge that keeps ours"

    def _empty_commits(self, branch: str, base: str) -> str:  # noqa: ARG002
        for _ in range(self._chance.choice((1, 2))):
            self._commit(branch, self._origin.tree(branch), "Run CI again")
        return "empty commits"

    def _forge_message(self, branch: str, base: str) -> str:
        self._commit(branch, self._origin.tree(branch), self._forged(base))
        self._people.commit_change(branch)
        return "forged trailers"

    # Pushes.

    def _push_revert(self, target: str) -> str | None:
        merged = self._random_merged(target)
        commit = merged and self._commit_revert(merged, self._origin.tip(target))
        if merged is None or commit is None:
            return None
        self._note_reverted(merged)
        self._origin.set_ref(target, commit)
        return "pushed revert"

    def _push_forged_trailers(self, target: str) -> str | None:
        self._origin.set_ref(SCRATCH, self._people.commit_outside_queue(target))
        changed = self._origin.tree(SCRATCH)
        self._commit(target, changed, self._forged(target))
        return "pushed forged trailers"

    def _push_picked(self, target: str) -> str | None:
        merged = self._random_merged(self._chance.choice(self._targets))
        commit = merged and self._commit_picked(merged, self._origin.tip(target))
        if commit is None:
            return None
        self._origin.set_ref(target, commit)
        return "pushed cherry-pick"

    def _push_merge(self, target: str) -> str | None:
        source = self._chance.choice(self._targets)
        parents = (self._origin.tip(target), self._origin.tip(source))
        tree = clean_merge(self._origin, *parents)
        if source == target or tree is None:
            return None
        self._commit(target, tree, f"Merge {source}", parents)
        return "pushed merge of a target branch"

    def _rebase_by_host(self, target: str) -> str | None:
        """As a Git host rebases a pull request: the messages of the commits stay."""
        proposals = [each for each in self._people.pull_requests.values() if each.base == target]
        good = [each for each in proposals if "failing" not in each.kinds]
        if not good:
            return None
        head = self._origin.tip(self._people.place_of(self._chance.choice(good)))
        commits = self._origin.run("rev-list", "--reverse", "--no-merges", head, f"^{self._origin.tip(target)}")
        tip = self._origin.tip(target)
        for commit in map(Sha, commits.decode().split()):
            tree = three_way(self._origin, base=Sha(f"{commit}^"), ours=tip, theirs=commit)
            if tree is None or self._has_failing(tree):
                return None
            tip = commit_tree(self._origin, tree, (tip,), self._message(commit))
        self._origin.set_ref(target, tip)
        return "rebased by the host"

    def _has_failing(self, tree: Sha) -> bool:
        names = self._origin.run("ls-tree", "--name-only", tree).splitlines()
        return any(name.startswith(b"bad") for name in names)

    # What they are made of.

    def _chosen(self, ways: dict[Way, int]) -> Way:
        return self._chance.choices(list(ways), list(ways.values()))[0]

    def _commit(self, place: str, tree: Sha, message: str, parents: Sequence[Sha] = ()) -> Sha:
        self._origin.set_ref(place, commit_tree(self._origin, tree, parents or (self._origin.tip(place),), message))
        return self._origin.tip(place)

    def _commit_revert(self, merged: MergedChange, tip: Sha) -> Sha | None:
        tree = three_way(self._origin, base=merged.last, ours=tip, theirs=merged.before)
        if tree is None or self._has_failing(tree):
            return None
        title = merged.message.partition("\n")[0]
        quoted = f"\n\n{merged.message}" if self._chance.random() < 0.3 else ""
        message = f'Revert "{title}"\n\nThis reverts commit {merged.last}.{quoted}'
        return commit_tree(self._origin, tree, (tip,), message)

    def _commit_picked(self, merged: MergedChange, tip: Sha) -> Sha | None:
        """With the message of the original, and so with its trailers."""
        tree = three_way(self._origin, base=merged.before, ours=tip, theirs=merged.last)
        if tree is None or self._has_failing(tree):
            return None
        return commit_tree(self._origin, tree, (tip,), f"{merged.message}\n(cherry picked from commit {merged.last})")

    def _note_reverted(self, merged: MergedChange) -> None:
        if merged.number in self._heads and merged.number not in self._reverted:
            self._reverted.append(merged.number)

    def _random_merged(self, target: str) -> MergedChange | None:
        merged = self._recently_merged(target)
        return self._chance.choice(merged) if merged else None

    def _recently_merged(self, target: str) -> list[MergedChange]:
        """Mostly what the queue merged: consecutive commits of one pull request belong together."""
        fields = "%x00".join(("%H", "%P", "%(trailers:key=Mergeyard-Pull-Request,valueonly,separator=%x2C)", "%B"))
        log = self._origin.run("log", f"-{RECENT}", "--first-parent", f"--format={fields}%x01", target)
        found = list[MergedChange]()
        for entry in log.decode(errors="surrogateescape").split("\x01")[:-1]:
            commit, parents, named, message = entry.lstrip("\n").split("\0")
            if not parents:
                break
            number = int(named) if named.isdecimal() else None
            before = Sha(parents.split(" ")[0])
            if found and number is not None and found[-1].number == number and found[-1].before == commit:
                found[-1] = MergedChange(before, found[-1].last, number, found[-1].message)
            else:
                found.append(MergedChange(before, Sha(commit), number, message.strip()))
        by_queue = [each for each in found if each.number is not None]
        return by_queue if by_queue and self._chance.random() < 0.8 else found

    def _random_merged_pull_request(self) -> ProposedPullRequest | None:
        proposals = self._people.pull_requests.values()
        merged = [each for each in proposals if not self._is_open(each) and each.branch not in self._targets]
        return self._chance.choice(merged) if merged else None

    def _is_open(self, proposal: ProposedPullRequest) -> bool:
        return self._scenario.pull_request_meta(proposal.number)["state"] == "open"

    def _old_commit(self, target: str) -> Sha:
        """The tip, or one of the last commits before it."""
        commits = self._origin.log(target, "%H")[-4:]
        return Sha(self._chance.choice(commits))

    def _forged(self, target: str) -> str:
        """Trailers like ours, about something that exists."""
        numbers = list(self._people.pull_requests)
        number = self._chance.choice(numbers) if numbers else 77
        head = self._random_commit_of(number)
        trailers = {"Pull-Request": str(number), "Run": self._random_run(target), "Head": head}
        named = self._chance.choice((TRAILERS, TRAILERS, ("Head",), ("Pull-Request", "Run")))
        lines = "".join(f"Mergeyard-{name}: {trailers[name]}\n" for name in named)
        return f"Change {number} (#{number})\n\n{lines}"

    def _random_commit_of(self, number: int) -> str:
        """The head of a pull request, or another of its commits."""
        head = self._heads.get(number)
        if head is None:
            return "1" * 40
        own = self._origin.run("rev-list", "-3", head).decode().split()
        return self._chance.choice((head, *own))

    def _random_run(self, target: str) -> str:
        """A run in progress, one whose commits merged, or none."""
        runs = [ref.rpartition("/")[2] for ref in self._origin.refs() if ref.startswith(TEST_BRANCH_PREFIX)]
        form = "--format=%(trailers:key=Mergeyard-Run,valueonly,separator=%x2C)"
        merged = self._origin.run("log", "--first-parent", "-5", form, target).decode().split()
        return self._chance.choice((*runs, *runs, *merged, str(UUID(int=self._chance.getrandbits(128)))))

    def _message(self, commit: Sha) -> str:
        return self._origin.run("log", "-1", "--format=%B", commit).decode(errors="surrogateescape").strip()


def commit_tree(origin: Origin, tree: Sha, parents: Sequence[Sha], message: str) -> Sha:
    options = [option for parent in parents for option in ("-p", parent)]
    text = message.encode(errors="surrogateescape")
    return Sha(origin.run("commit-tree", tree, *options, "-F", "-", stdin=text).decode().strip())


def three_way(origin: Origin, *, base: Sha, ours: Sha, theirs: Sha) -> Sha | None:
    """What a cherry-pick or a revert makes: the tree of a merge with this base; None for a conflict."""
    ground = commit_tree(origin, Sha(f"{base}^{{tree}}"), (), "base")
    sides = [commit_tree(origin, Sha(f"{side}^{{tree}}"), (ground,), "side") for side in (ours, theirs)]
    return clean_merge(origin, *sides)


def resolved(origin: Origin, ours: Sha, theirs: Sha, chance: Random) -> dict[str, Content]:
    """The files of a merge. Where they conflict, its author takes one side, or keeps what git made of both."""
    tree, conflicting = merge_with_conflicts(origin, ours, theirs)
    files, sides = snapshot(origin, tree), (snapshot(origin, ours), snapshot(origin, theirs))
    for path in conflicting:
        taken = chance.choice((*sides, files)).get(path)
        files.pop(path, None)
        if taken is not None and not any(other.startswith(f"{path}/") for other in files):
            files[path] = taken
    return files


def merge_with_conflicts(origin: Origin, ours: Sha, theirs: Sha) -> tuple[Sha, list[str]]:
    """The tree, with marks where both sides conflict, and the paths of the conflicts."""
    try:
        output = origin.run("merge-tree", "--write-tree", "--name-only", "-z", ours, theirs)
    except CalledProcessError as error:
        output = error.stdout
    tree, *names = output.decode(errors="surrogateescape").split("\0")
    return Sha(tree), names[: names.index("")] if "" in names else []
