"""What becomes of pull requests: opened, pushed to, merged, marked as merged."""

import subprocess
import tempfile
from collections.abc import Mapping

from mergeyard.domain.ids import Sha
from tests.support.forges.git_rooms import Moves, Visit
from tests.support.forges.gitea.judging import holds
from tests.support.forges.gitea.letters import Letters
from tests.support.forges.gitea.nouns import Account, Pull, Repository
from tests.support.forges.gitea.world import TOKEN_AS_USER, Refusal, World
from tests.support.repositories import ENVIRONMENT

HEADS = "refs/heads/"
STYLES = {"merge": "allow_merge_commits", "squash": "allow_squash_merge", "rebase": "allow_rebase"}


class Acts:
    def __init__(self, world: World, letters: Letters) -> None:
        self._world = world
        self.letters = letters

    def open(self, repository: Repository, by: Account, told: Mapping[str, str]) -> Pull:
        owner, _, branch = told["head"].rpartition(":")
        source = self._world.repository(owner, repository.name) if owner else repository
        if not owner and not self._world.may(repository, by, "write"):
            raise Refusal(403, "user must be a collaborator")
        head = source.origin.ref(branch)
        if head is None or repository.origin.ref(told["base"]) is None:
            raise Refusal(404, "not found")
        if any(_is_the_same(pull, source, branch, told["base"]) for pull in repository.pulls.values()):
            raise Refusal(409, "pull request already exists for these targets")
        now, number = self._world.now(), len(repository.pulls) + 1
        pull = Pull(number, by, told["title"], told.get("body", ""), told["base"], branch, source, head, now, now)
        repository.pulls[number] = pull
        self._show_head(repository, pull)
        self.letters.of_pull(repository, pull, by, "pull_request", "opened")
        return pull

    def touch(self, repository: Repository, pull: Pull, by: Account, event: str, action: str) -> None:
        pull.updated = self._world.now()
        self.letters.of_pull(repository, pull, by, event, action)

    def pushed(self, visit: Visit, moves: Moves) -> None:
        token = self._world.tokens[visit.user if visit.password == TOKEN_AS_USER else visit.password]
        with self._world.lock:
            self.moved(self._world.repositories[visit.repository.lower()], token.account, moves)

    def moved(self, repository: Repository, by: Account, moves: Moves) -> None:
        """It follows the branches of pull requests, and closes those whose branch is gone."""
        for ref, (old, new) in moves.items():
            if not ref.startswith(HEADS):
                continue
            self.letters.of_push(repository, by, ref, old, new)
            for base in self._world.repositories.values():
                for pull in base.pulls.values():
                    if pull.state == "open" and pull.source is repository and pull.branch == ref.removeprefix(HEADS):
                        self._follow(base, pull, by, new)

    def merge(self, repository: Repository, pull: Pull, by: Account, style: str, words: str) -> None:
        if not getattr(repository.settings, STYLES[style]):
            raise Refusal(405, f"{style} is not allowed an allowed merge style for this repository")
        before = repository.origin.tip(pull.base)
        after = _rebased(repository, before, pull) if style == "rebase" else _merged(repository, pull, style, words)
        repository.origin.set(pull.base, after)
        self.letters.of_push(repository, by, f"{HEADS}{pull.base}", before, after)
        self._conclude(repository, pull, by, after)

    def mark(self, repository: Repository, pull: Pull, by: Account, commit: str) -> None:
        if not repository.settings.allow_manual_merge:
            raise Refusal(405, "manually-merged is not allowed an allowed merge style for this repository")
        if len(commit) != len(pull.head) or not holds(repository, repository.origin.tip(pull.base), commit):
            raise Refusal(409, "Wrong commit ID")
        self._conclude(repository, pull, by, Sha(commit))

    def _conclude(self, repository: Repository, pull: Pull, by: Account, commit: Sha) -> None:
        pull.state, pull.merged, pull.merge_commit = "closed", True, commit
        self.touch(repository, pull, by, "pull_request", "closed")

    def _follow(self, base: Repository, pull: Pull, by: Account, head: Sha | None) -> None:
        if head is None:
            pull.state = "closed"
            return self.touch(base, pull, by, "pull_request", "closed")
        pull.head, pull.pushes = head, pull.pushes + 1
        self._show_head(base, pull)
        return self.touch(base, pull, by, "pull_request_sync", "synchronized")

    def _show_head(self, repository: Repository, pull: Pull) -> None:
        if pull.source is not repository:
            repository.origin.run("fetch", "--quiet", pull.source.origin.url, pull.head)
        repository.origin.set(f"refs/pull/{pull.number}/head", pull.head)


def _is_the_same(pull: Pull, source: Repository, branch: str, base: str) -> bool:
    return pull.state == "open" and pull.source is source and (pull.branch, pull.base) == (branch, base)


def _merged(repository: Repository, pull: Pull, style: str, words: str) -> Sha:
    origin = repository.origin
    tip = origin.tip(pull.base)
    tree = origin.merged_tree(tip, pull.head)
    assert tree
    parents = ["-p", tip, *(["-p", pull.head] if style == "merge" else [])]
    author = {"GIT_AUTHOR_NAME": pull.author.login, "GIT_AUTHOR_EMAIL": f"{pull.author.login}@example.org"}
    command = ["git", "--git-dir", origin.url, "commit-tree", *parents, "-m", words, tree]
    out = subprocess.run(command, env=ENVIRONMENT | author, check=True, capture_output=True).stdout
    return Sha(out.decode().strip())


def _rebased(repository: Repository, tip: Sha, pull: Pull) -> Sha:
    with tempfile.TemporaryDirectory() as folder:

        def git(*arguments: str) -> str:
            command = ["git", "-C", folder, *arguments]
            return subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout

        git("clone", "--quiet", "--no-checkout", repository.origin.url, ".")
        git("fetch", "--quiet", "origin", pull.head)
        git("checkout", "--quiet", "--detach", pull.head)
        git("rebase", "--quiet", tip)
        git("push", "--quiet", "origin", "HEAD:refs/internal/rebased")
    return repository.origin.tip("refs/internal/rebased")
