"""Actions on pull requests: open, push, merge, mark as merged."""

import subprocess
import tempfile
from collections.abc import Mapping

from mergeyard.domain.ids import Sha
from tests.support.forges.git_server import GitRequest, RefUpdates
from tests.support.forges.gitea.rules import contains
from tests.support.forges.gitea.webhooks import Webhooks
from tests.support.forges.gitea.world import TOKEN_AS_USER, Account, ApiError, PullRequest, Repository, World
from tests.support.repositories import ENVIRONMENT

HEADS = "refs/heads/"
STYLES = {"merge": "allow_merge_commits", "squash": "allow_squash_merge", "rebase": "allow_rebase"}


class Actions:
    def __init__(self, world: World, webhooks: Webhooks) -> None:
        self._world = world
        self.webhooks = webhooks

    def open_pull_request(self, repository: Repository, by: Account, fields: Mapping[str, str]) -> PullRequest:
        owner, _, branch = fields["head"].rpartition(":")
        source = self._world.repository(owner, repository.name) if owner else repository
        if not owner and not self._world.has_role(repository, by, "write"):
            raise ApiError(403, "user must be a collaborator")
        head = source.origin.ref(branch)
        if head is None or repository.origin.ref(fields["base"]) is None:
            raise ApiError(404, "not found")
        if any(_is_duplicate(pull, source, branch, fields["base"]) for pull in repository.pull_requests.values()):
            raise ApiError(409, "pull request already exists for these targets")
        now, number = self._world.now(), len(repository.pull_requests) + 1
        pull = PullRequest(
            number, by, fields["title"], fields.get("body", ""), fields["base"], branch, source, head, now, now
        )
        repository.pull_requests[number] = pull
        self._show_head(repository, pull)
        self.webhooks.send_pull_request(repository, pull, by, "pull_request", "opened")
        return pull

    def touch(self, repository: Repository, pull: PullRequest, by: Account, event: str, action: str) -> None:
        pull.updated = self._world.now()
        self.webhooks.send_pull_request(repository, pull, by, event, action)

    def on_push(self, request: GitRequest, updates: RefUpdates) -> None:
        token = self._world.tokens[request.user if request.password == TOKEN_AS_USER else request.password]
        with self._world.lock:
            self.on_refs_updated(self._world.repositories[request.repository.lower()], token.account, updates)

    def on_refs_updated(self, repository: Repository, by: Account, updates: RefUpdates) -> None:
        """Updates the heads of pull requests, and closes those whose branch was deleted."""
        for ref, (old, new) in updates.items():
            if not ref.startswith(HEADS):
                continue
            self.webhooks.send_push(repository, by, ref, old, new)
            for base in self._world.repositories.values():
                for pull in base.pull_requests.values():
                    if (
                        pull.state == "open"
                        and pull.head_repository is repository
                        and pull.head_branch == ref.removeprefix(HEADS)
                    ):
                        self._update_head(base, pull, by, new)

    def merge(self, repository: Repository, pull: PullRequest, by: Account, style: str, message: str) -> None:
        if not getattr(repository.settings, STYLES[style]):
            raise ApiError(405, f"{style} is not allowed an allowed merge style for this repository")
        before = repository.origin.tip(pull.base)
        after = (
            _rebase(repository, before, pull)
            if style == "rebase"
            else _create_merge_commit(repository, pull, style, message)
        )
        repository.origin.set_ref(pull.base, after)
        self.webhooks.send_push(repository, by, f"{HEADS}{pull.base}", before, after)
        self._conclude(repository, pull, by, after)

    def mark_merged(self, repository: Repository, pull: PullRequest, by: Account, commit: str) -> None:
        if not repository.settings.allow_manual_merge:
            raise ApiError(405, "manually-merged is not allowed an allowed merge style for this repository")
        if len(commit) != len(pull.head) or not contains(repository, repository.origin.tip(pull.base), commit):
            raise ApiError(409, "Wrong commit ID")
        self._conclude(repository, pull, by, Sha(commit))

    def _conclude(self, repository: Repository, pull: PullRequest, by: Account, commit: Sha) -> None:
        pull.state, pull.merged, pull.merge_commit = "closed", True, commit
        self.touch(repository, pull, by, "pull_request", "closed")

    def _update_head(self, base: Repository, pull: PullRequest, by: Account, head: Sha | None) -> None:
        if head is None:
            pull.state = "closed"
            return self.touch(base, pull, by, "pull_request", "closed")
        pull.head, pull.pushes = head, pull.pushes + 1
        self._show_head(base, pull)
        return self.touch(base, pull, by, "pull_request_sync", "synchronized")

    def _show_head(self, repository: Repository, pull: PullRequest) -> None:
        if pull.head_repository is not repository:
            repository.origin.run("fetch", "--quiet", pull.head_repository.origin.url, pull.head)
        repository.origin.set_ref(f"refs/pull/{pull.number}/head", pull.head)


def _is_duplicate(pull: PullRequest, source: Repository, branch: str, base: str) -> bool:
    return pull.state == "open" and pull.head_repository is source and (pull.head_branch, pull.base) == (branch, base)


def _create_merge_commit(repository: Repository, pull: PullRequest, style: str, message: str) -> Sha:
    origin = repository.origin
    tip = origin.tip(pull.base)
    tree = origin.merged_tree(tip, pull.head)
    assert tree
    parents = ["-p", tip, *(["-p", pull.head] if style == "merge" else [])]
    author = {"GIT_AUTHOR_NAME": pull.author.login, "GIT_AUTHOR_EMAIL": f"{pull.author.login}@example.org"}
    command = ["git", "--git-dir", origin.url, "commit-tree", *parents, "-m", message, tree]
    out = subprocess.run(command, env=ENVIRONMENT | author, check=True, capture_output=True).stdout
    return Sha(out.decode().strip())


def _rebase(repository: Repository, tip: Sha, pull: PullRequest) -> Sha:
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
