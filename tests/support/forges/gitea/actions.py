"""Actions on pull requests: open, push, merge, mark as merged."""

import subprocess
from collections.abc import Mapping
from contextlib import suppress

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Identity
from tests.support.forges.git_server import GitRequest, RefUpdates
from tests.support.forges.gitea.rules import contains, is_official_reviewer
from tests.support.forges.gitea.webhooks import Webhooks
from tests.support.forges.gitea.world import TOKEN_AS_USER, Account, ApiError, PullRequest, Repository, Review, World
from tests.support.forges.host_rebase import GIT_DEFAULTS, rebase
from tests.support.repositories import ENVIRONMENT

HEADS = "refs/heads/"
REVIEW_EVENTS = {"APPROVED": "pull_request_review_approved", "REQUEST_CHANGES": "pull_request_review_rejected"}
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
            number, by, fields["title"], fields.get("body", ""), fields["base"], branch, source, head, None, now, now
        )
        repository.pull_requests[number] = pull
        self._show_head(repository, pull)
        self._update_merge_base(repository, pull)
        self.webhooks.send_pull_request(repository, pull, by, "pull_request", "opened")
        return pull

    def touch(self, repository: Repository, pull: PullRequest, by: Account, event: str, action: str) -> None:
        pull.updated = self._world.now()
        self.webhooks.send_pull_request(repository, pull, by, event, action)

    def review(self, repository: Repository, pull: PullRequest, by: Account, state: str, body: str = "") -> Review:
        """Of each account only the latest review is official. It answers a request."""
        pull.reviews[:] = [each for each in pull.reviews if each.author is not by or each.state != "REQUEST_REVIEW"]
        review = self._add_review(repository, pull, by, state, body)
        event = REVIEW_EVENTS.get(state, "pull_request_review_comment")
        self.touch(repository, pull, by, event, "reviewed")
        return review

    def request_review(self, repository: Repository, pull: PullRequest, reviewer: Account) -> Review:
        """An earlier review of the same account is no longer official."""
        request = self._add_review(repository, pull, reviewer, "REQUEST_REVIEW", "")
        self.touch(repository, pull, pull.author, "pull_request_review_request", "review_requested")
        return request

    def request_team_review(self, pull: PullRequest, team: str) -> Review:
        """Never official, as on Gitea."""
        request = Review(self._world.next_id(), None, "REQUEST_REVIEW", "", pull.head, official=False, team=team)
        pull.reviews.append(request)
        pull.updated = self._world.now()
        return request

    def dismiss(self, pull: PullRequest, review: Review, *, dismissed: bool = True) -> None:
        """Gitea sends no webhook for it."""
        if review.state not in REVIEW_EVENTS:
            raise ApiError(403, "not need to dismiss this review because it's type is not Approve or change request")
        review.dismissed = dismissed
        pull.updated = self._world.now()

    def _add_review(self, repository: Repository, pull: PullRequest, by: Account, state: str, body: str) -> Review:
        official = state != "COMMENT" and is_official_reviewer(self._world, repository, pull, by)
        for earlier in pull.reviews:
            is_replaced = state != "COMMENT" and earlier.author is by
            earlier.official = earlier.official and not is_replaced
        review = Review(self._world.next_id(), by, state, body, pull.head, official)
        pull.reviews.append(review)
        return review

    def on_push(self, request: GitRequest, updates: RefUpdates) -> None:
        token = self._world.tokens[request.user if request.password == TOKEN_AS_USER else request.password]
        with self._world.lock:
            self.on_refs_updated(self._world.repositories[request.repository.lower()], token.account, updates)

    def on_refs_updated(self, repository: Repository, by: Account, updates: RefUpdates) -> None:
        """Updates the heads of pull requests, and closes those whose branch was deleted. One whose base was deleted
        gets the default branch as its base, unless Gitea refuses that. Gitea finds out again what an open pull request
        changes when its head or its base moves: nothing, if both move to the same commit."""
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
            if new is None:
                self._leave_branch(repository, ref.removeprefix(HEADS))
        for base in self._world.repositories.values():
            for pull in base.pull_requests.values():
                places = ((base, pull.base), (pull.head_repository, pull.head_branch))
                has_moved = any(place is repository and f"{HEADS}{branch}" in updates for place, branch in places)
                if pull.state == "open" and has_moved:
                    self._update_merge_base(base, pull)

    def retarget(self, repository: Repository, pull: PullRequest, base: str) -> None:
        others = (each for each in repository.pull_requests.values() if each is not pull)
        if repository.origin.ref(base) is None:
            raise ApiError(404, f"new base '{base}' not exist")
        if pull.state != "open":
            raise ApiError(422, f"Pull Request [index: {pull.number}] is already closed")
        if any(_is_duplicate(each, pull.head_repository, pull.head_branch, base) for each in others):
            raise ApiError(409, "pull request already exists for these targets")
        pull.base = base
        self._update_merge_base(repository, pull)

    def _leave_branch(self, repository: Repository, branch: str) -> None:
        for pull in repository.pull_requests.values():
            if pull.state == "open" and pull.base == branch:
                with suppress(ApiError):
                    self.retarget(repository, pull, repository.settings.default_branch)

    def _update_merge_base(self, repository: Repository, pull: PullRequest) -> None:
        tip = repository.origin.ref(pull.base)
        if tip is not None:
            pull.merge_base = Sha(repository.origin.run("merge-base", tip, pull.head).decode().strip())

    def merge(self, repository: Repository, pull: PullRequest, by: Account, style: str, message: str) -> None:
        if not getattr(repository.settings, STYLES[style]):
            raise ApiError(405, f"{style} is not allowed an allowed merge style for this repository")
        before = repository.origin.tip(pull.base)
        after = (
            _rebase(repository, before, pull, by)
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
    author = {"GIT_AUTHOR_NAME": pull.author.login, "GIT_AUTHOR_EMAIL": pull.author.email}
    command = ["git", "--git-dir", origin.url, "commit-tree", *parents, "-m", message, tree]
    out = subprocess.run(command, env=ENVIRONMENT | author, check=True, capture_output=True).stdout
    return Sha(out.decode().strip())


def _rebase(repository: Repository, tip: Sha, pull: PullRequest, by: Account) -> Sha:
    """Gitea runs `git rebase` without options, in the name of the account that merges."""
    committer = Identity(by.full_name or by.login, by.email)
    rebased = rebase(repository.origin, tip, pull.head, committer, GIT_DEFAULTS)
    assert rebased
    return rebased
