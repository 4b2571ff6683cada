"""One repository of the fake, and the actions of users and GitHub on it; each sends its webhooks."""

from itertools import count
from typing import Any

from mergeyard.domain.ids import Sha
from mergeyard.ports.external import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.git_server import RefUpdates
from tests.support.forges.github.webhooks import Webhooks
from tests.support.forges.github.world import BranchProtection, CheckRun, Comment, CommitStatus, Hook, PullRequest
from tests.support.repositories import Files, Origin

BRANCH_PREFIX = "refs/heads/"


class FakeRepository:
    def __init__(self, name: str, origin: Origin, clock: Clock, hooks: list[Hook], deliveries: Deliveries) -> None:
        """The webhooks can be those of an app, which repositories share."""
        self.name = name
        self.origin = origin
        self.clock = clock
        self.hooks = hooks
        self.webhooks = Webhooks(name, hooks, deliveries)
        self.pull_requests: dict[int, PullRequest] = {}
        self.comments: dict[int, Comment] = {}
        self.statuses: dict[str, dict[str, CommitStatus]] = {}
        self.check_runs: dict[str, list[CheckRun]] = {}
        self.protections: dict[str, BranchProtection] = {}
        """Classic protection by branch."""
        self.rulesets: dict[str, BranchProtection] = {}
        self.update_rulesets: dict[str, BranchProtection] = {}
        """Rulesets that only restrict updates, by branch; only their bypass list is used."""
        self.roles: dict[str, str] = {}
        """Role by user: admin, maintain, write, triage or read."""
        self.merge_methods = {"merge", "squash", "rebase"}
        self.ids = count(1001)
        self._numbers = count(1)
        self._suites: dict[tuple[str, str], int] = {}
        """Check suite by commit and app."""

    @property
    def owner(self) -> str:
        return self.name.partition("/")[0]

    # Actions of users and CI.

    def open_pull_request(self, branch: str, **facts: Any) -> PullRequest:
        """Opens a pull request of a branch; `home` is the full name of a fork."""
        number, head = next(self._numbers), self.origin.tip(branch)
        defaults: dict[str, Any] = {"title": "A change", "author": "ada", "base": "main", "home": self.name}
        change = PullRequest(number=number, branch=branch, head=head, at=self.clock.now(), **(defaults | facts))
        self.pull_requests[number] = change
        self._show_head(change)
        self.send_pull_request_event(change, "opened")
        return change

    def push_commit(self, branch: str, files: Files, merging: str | None = None) -> Sha:
        """Pushes a commit to a branch."""
        before = self.origin.ref(branch)
        after = self.origin.commit(branch, files, merging=merging)
        self.on_push({BRANCH_PREFIX + branch: (before, after)})
        return after

    def edit(self, number: int, action: str = "edited", **facts: Any) -> None:
        change = self.pull_requests[number]
        for name, fact in facts.items():
            setattr(change, name, fact)
        self.send_pull_request_event(change, action)

    def close(self, number: int) -> None:
        self.edit(number, "closed", open=False)

    def add_label(self, number: int, label: str) -> None:
        self.pull_requests[number].labels.append(label)
        self.send_pull_request_event(self.pull_requests[number], "labeled")

    def remove_label(self, number: int, label: str) -> None:
        self.pull_requests[number].labels.remove(label)
        self.send_pull_request_event(self.pull_requests[number], "unlabeled")

    def add_review(self, number: int, person: str, opinion: str) -> None:
        self.pull_requests[number].reviews.append((person, opinion))
        self.touch(self.pull_requests[number])
        self.webhooks.send_review(self.pull_requests[number], person)

    def add_comment(self, number: int, author: str, text: str) -> Comment:
        now = self.clock.now()
        comment = Comment(id=next(self.ids), number=number, author=author, body=text, created_at=now, updated_at=now)
        self.comments[comment.id] = comment
        self.touch(self.pull_requests[number])
        self.webhooks.send_comment(comment)
        return comment

    def report_status(self, sha: str, context: str, state: str, url: str | None = None, **facts: Any) -> CommitStatus:
        status = CommitStatus(context=context, state=state, at=self.clock.now(), url=url, **facts)
        self.statuses.setdefault(sha, {})[context] = status
        self.webhooks.send_status(sha, status)
        return status

    def add_check_run(
        self, sha: Sha, name: str, status: str = "completed", conclusion: str | None = None, **facts: Any
    ) -> CheckRun:
        now = self.clock.now()
        defaults: dict[str, Any] = {
            "started_at": None if status == "queued" else now,
            "completed_at": now if status == "completed" else None,
            "suite": self._suites.setdefault((sha, facts.get("app", "")), len(self._suites) + 1),
        }
        run = CheckRun(id=next(self.ids), name=name, status=status, conclusion=conclusion, **(defaults | facts))
        self.check_runs.setdefault(sha, []).append(run)
        self.webhooks.send_check_run(sha, run)
        return run

    def latest_check_runs(self, sha: str) -> list[CheckRun]:
        """The latest check run per suite and name."""
        return list({(run.suite, run.name): run for run in self.check_runs.get(sha, [])}.values())

    # Reactions of GitHub.

    def touch(self, change: PullRequest) -> None:
        change.at = self.clock.now()

    def send_pull_request_event(self, change: PullRequest, action: str) -> None:
        self.touch(change)
        self.webhooks.send_pull_request(change, action)

    def on_push(self, updates: RefUpdates) -> None:
        """Updates heads, and marks pull requests as merged whose head the base branch now contains."""
        for ref, (before, after) in updates.items():
            if ref.startswith(BRANCH_PREFIX):
                self._update_pull_requests(ref.removeprefix(BRANCH_PREFIX), after)
                self.webhooks.send_push(ref, before, after)

    def _update_pull_requests(self, branch: str, tip: Sha | None) -> None:
        for change in [change for change in self.pull_requests.values() if change.open]:
            if change.branch == branch and change.home == self.name:
                self._move_head(change, tip)
            elif change.base == branch and tip is not None and self.contains(tip, change.head):
                self.mark_merged(change, tip)

    def _move_head(self, change: PullRequest, tip: Sha | None) -> None:
        if tip is None:
            return self.close(change.number)
        change.head = tip
        self._show_head(change)
        return self.send_pull_request_event(change, "synchronize")

    def mark_merged(self, change: PullRequest, commit: Sha) -> None:
        change.open, change.merged = False, commit
        self.send_pull_request_event(change, "closed")

    def contains(self, commit: Sha, ancestor: Sha) -> bool:
        return self.origin.run("merge-base", commit, ancestor).decode().strip() == ancestor

    def _show_head(self, change: PullRequest) -> None:
        self.origin.set_ref(f"refs/pull/{change.number}/head", change.head)
