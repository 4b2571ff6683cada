"""The driver for the fake GitHub."""

from pathlib import Path

from mergeyard.domain.ids import TEST_BRANCH_PREFIX, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.external import Clock
from mergeyard.settings import ForgeHost, Provider
from tests.support.forge_drivers.driver import (
    BOT,
    MAINTAINER,
    REACTIONS,
    SECRET,
    STRANGER,
    ForgeComment,
    ForgePaths,
    ForgeStatus,
)
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.fake import FakeGithub
from tests.support.forges.github.rules import merge
from tests.support.forges.github.rulesets import required_checks_rule
from tests.support.forges.github.world import Comment, Hook, PullRequest
from tests.support.repositories import Files

EVENTS = [
    *("pull_request", "pull_request_review", "pull_request_review_thread", "issue_comment"),
    *("status", "check_run", "check_suite", "push"),
]
TOKEN = "ghp_of_mergeyard"
"""A classic token: the only kind that can push to forks."""
REQUIRED_STATUS = "required"
FOREVER = 1_000_000


class GithubDriver:
    command_prefix = "/merge"
    paths = ForgePaths(
        api="^/api/v3/",
        pull_request="/pulls/1$",
        merge="/pulls/[0-9]+/merge$",
        comments="/issues/[0-9]+/comments$",
        reactions="/reactions$",
        statuses="/commits/[0-9a-f]{40}/status$",
        drafts="/pulls$",
    )

    def __init__(self, root: Path, clock: Clock) -> None:
        self.github = FakeGithub(root, clock)
        self.github.add_token(TOKEN, BOT)
        self.acme = self.github.create_repository("acme/app")
        self.acme.roles |= {BOT: "write", "ada": "write", MAINTAINER: "maintain"}
        self.origin = self.acme.origin
        self.deliveries = self.github.deliveries
        self.faults = self.github.faults
        self.git_server = self.github.git_server
        self.settings = ForgeHost(
            provider=Provider.GITHUB,
            url=self.github.web_url,
            api_url=self.github.api_url,
            token=TOKEN,
            webhook_secret=SECRET,
        )

    def add_webhook(self, url: str) -> None:
        self.acme.hooks.append(Hook(url=url, secret=SECRET, events=EVENTS))

    def close(self) -> None:
        self.github.__exit__()

    # Actions of users.

    def open(self, number: int, files: Files, base: str) -> None:
        self._open(number, files, base, self.acme)

    def open_fork(self, number: int, files: Files) -> None:
        self._open(number, files, "main", self.fork)
        self._pull_request(number).author = STRANGER

    def allow_edits(self, number: int) -> None:
        self._pull_request(number).maintainer_can_modify = True

    def retarget(self, number: int, base: str) -> None:
        self.acme.edit(number, base=base)

    def make_draft(self, number: int) -> None:
        self.acme.edit(number, "converted_to_draft", draft=True)

    def make_ready(self, number: int) -> None:
        self.acme.edit(number, "ready_for_review", draft=False)

    def push(self, number: int, files: Files) -> Sha:
        change = self._pull_request(number)
        return (self.acme if change.home == "acme/app" else self.fork).push_commit(change.branch, files)

    def point_fork_at(self, number: int, head: Sha) -> None:
        self.origin.set_ref(f"refs/pull/{number}/head", head)
        self.acme.edit(number, "synchronize", head=head)

    def push_to_main(self, files: Files) -> Sha:
        return self.acme.push_commit("main", files)

    def merge_by_hand(self, number: int) -> None:
        merge(self.acme, self._pull_request(number), "merge", None, "By hand")

    def close_pull_request(self, number: int) -> None:
        self.acme.close(number)

    def describe(self, number: int, text: str) -> None:
        self.acme.edit(number, text=text)

    def comment(self, number: int, person: str, text: str) -> None:
        self.acme.add_comment(number, person, text)

    def edit_comment(self, number: int, text: str) -> None:
        self.acme.edit_comment(self._last_comment(number), text)

    def _last_comment(self, number: int) -> Comment:
        return [each for each in self.acme.comments.values() if each.number == number and each.author != BOT][-1]

    def delete_our_comments(self, number: int) -> None:
        for comment in [each for each in self.acme.comments.values() if each.number == number and each.author == BOT]:
            del self.acme.comments[comment.id]

    def label(self, number: int, label: str) -> None:
        self.acme.add_label(number, label)

    def unlabel(self, number: int, label: str) -> None:
        self.acme.remove_label(number, label)

    # Reviews.

    def approve(self, number: int, person: str) -> None:
        self.acme.add_review(number, person, "APPROVED")

    def request_changes(self, number: int, person: str) -> None:
        self.acme.add_review(number, person, "CHANGES_REQUESTED")

    def dismiss_reviews(self, number: int) -> None:
        for review in self._pull_request(number).reviews:
            if review.state in ("APPROVED", "CHANGES_REQUESTED"):
                self.acme.dismiss(number, review.user)

    # Results of CI.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        self.acme.report_status(sha, check, state, url=url or None)

    def run_check(self, sha: Sha, check: str, url: str) -> None:
        self.acme.add_check_run(sha, check, conclusion="success", url=url)

    # Mergeability and protection.

    def hide_mergeability(self, number: int) -> None:
        self._pull_request(number).being_checked = FOREVER

    def show_mergeability(self, number: int) -> None:
        self._pull_request(number).being_checked = 0

    def protect_main(self) -> str:
        """With a ruleset: only administrators, and apps with a permission, can read classic protection."""
        self.acme.add_ruleset("checks", [required_checks_rule(REQUIRED_STATUS)])
        return REQUIRED_STATUS

    def satisfy_protection(self, sha: Sha) -> None:
        self.report(sha, REQUIRED_STATUS, StatusState.SUCCESS)

    # State.

    def head(self, number: int) -> Sha:
        return self._pull_request(number).head

    def base(self, number: int) -> str:
        return self._pull_request(number).base

    def is_open(self, number: int) -> bool:
        return self._pull_request(number).open

    def is_merged(self, number: int) -> bool:
        return self._pull_request(number).merged is not None

    def labels(self, number: int) -> list[str]:
        return self._pull_request(number).labels

    def comments(self, number: int) -> list[ForgeComment]:
        return [
            ForgeComment(
                author=each.author,
                text=each.body,
                reactions=tuple(REACTIONS[reaction] for user, reaction in each.reactions if user == BOT),
            )
            for each in self.acme.comments.values()
            if each.number == number
        ]

    def bot_status(self, sha: Sha) -> ForgeStatus | None:
        found = self.acme.statuses.get(sha, {}).get("mergeyard")
        return found and ForgeStatus(state=found.state, url=found.url or "", description=found.description or "")

    def drafts(self) -> dict[str, bool]:
        changes = [change for change in self.acme.pull_requests.values() if change.author == BOT]
        return {change.branch: change.open for change in changes if change.branch.startswith(TEST_BRANCH_PREFIX)}

    @property
    def fork(self) -> FakeRepository:
        """Eve's fork, created when it is first needed."""
        return self.github.repositories.get("eve/app") or self.github.fork(self.acme, "eve/app")

    def _open(self, number: int, files: Files, base: str, home: FakeRepository) -> None:
        branch = f"feature{number}"
        fork = None if home is self.acme else home
        if fork is not None:
            fork.origin.run("fetch", "--quiet", self.origin.url, "+refs/heads/main:refs/heads/main")
        home.origin.branch(branch, base=base, files=files)
        change = self.acme.open_pull_request(branch, title=f"Change {number}", fork=fork)
        assert change.number == number

    def _pull_request(self, number: int) -> PullRequest:
        return self.acme.pull_requests[number]
