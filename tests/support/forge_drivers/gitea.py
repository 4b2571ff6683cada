"""The driver for the fake Gitea."""

from pathlib import Path

from mergeyard.domain.ids import SHA_PATTERN, Sha
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
from tests.support.forges.gitea.api import API_ROOT
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.forges.gitea.rules import latest_statuses
from tests.support.forges.gitea.world import Account, Comment, Hook, Label, PullRequest, Repository, Rule, Status
from tests.support.repositories import Files

SCOPES = ("write:repository", "write:issue", "read:user")
EVENTS = [
    *("push", "delete", "status", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment"),
    *("pull_request_review", "pull_request_review_request"),
]
REQUIRED_STATUS = "required"
DRAFT_PREFIX = "WIP: "


class GiteaDriver:
    command_prefix = "/merge"
    paths = ForgePaths(
        api="^/api/v1/",
        pull_request="/pulls/1$",
        merge="/pulls/[0-9]+/merge$",
        comments="/issues/[0-9]+/comments$",
        reactions="/reactions$",
        statuses=f"/commits/({SHA_PATTERN})/status(es)?$",
        drafts="/pulls$",
    )

    def __init__(self, root: Path, clock: Clock) -> None:
        self.gitea = FakeGitea(root, clock).__enter__()
        self.world, self.actions = self.gitea.world, self.gitea.actions
        self._accounts = {
            name: self.world.make_account(name, "") for name in ("acme", "ada", BOT, STRANGER, MAINTAINER)
        }
        self.acme = self._repository("acme")
        self.acme.origin.commit("main", {"a.txt": "1"})
        self.acme.roles |= {"ada": "write", MAINTAINER: "admin", BOT: "admin"}
        self.acme.settings.allow_manual_merge = True
        self.rule = Rule(
            rule_name="main",
            enable_push=True,
            enable_push_whitelist=True,
            push_whitelist_usernames=[BOT],
            enable_merge_whitelist=True,
            merge_whitelist_usernames=[BOT],
        )
        """Only the queue can change `main`."""
        self.acme.rules.append(self.rule)
        self.origin = self.acme.origin
        self.deliveries = self.gitea.deliveries
        self.faults = self.gitea.faults
        self.git_server = self.world.git_server
        self.settings = ForgeHost(
            provider=Provider.GITEA,
            url=self.gitea.url,
            api_url=self.gitea.url + API_ROOT,
            token=self.world.make_token(self._accounts[BOT], *SCOPES),
            webhook_secret=SECRET,
        )

    def add_webhook(self, url: str) -> None:
        hook = Hook(self.world.next_id(), url, SECRET, "json", EVENTS, active=True)
        self.acme.hooks.append(hook)

    def close(self) -> None:
        self.gitea.__exit__()

    # Actions of users.

    def open(self, number: int, files: Files, base: str) -> None:
        self.origin.branch(f"feature{number}", base=base, files=files)
        self._open(number, f"feature{number}", self._ada)

    def open_fork(self, number: int, files: Files) -> None:
        fork = self._repository(STRANGER)
        fork.origin.run("fetch", "--quiet", self.origin.url, "refs/heads/main:refs/heads/main")
        fork.origin.branch(f"feature{number}", base="main", files=files)
        self._open(number, f"{STRANGER}:feature{number}", self._accounts[STRANGER])

    def make_draft(self, number: int) -> None:
        self._set_title(number, DRAFT_PREFIX + self._pull_request(number).title)

    def make_ready(self, number: int) -> None:
        self._set_title(number, self._pull_request(number).title.removeprefix(DRAFT_PREFIX))

    def push(self, number: int, files: Files) -> Sha:
        return self._commit(self._pull_request(number).head_repository, f"feature{number}", files)

    def push_to_main(self, files: Files) -> Sha:
        return self._commit(self.acme, "main", files)

    def merge_by_hand(self, number: int) -> None:
        self.actions.merge(self.acme, self._pull_request(number), self._ada, "merge", "By hand")

    def close_pull_request(self, number: int) -> None:
        self._pull_request(number).state = "closed"
        self._touch(number, "closed")

    def allow_edits(self, number: int) -> None:
        """Nothing to do: the queue pushes to no fork on Gitea."""

    def retarget(self, number: int, base: str) -> None:
        self.actions.retarget(self.acme, self._pull_request(number), base)
        self._touch(number, "edited")

    def describe(self, number: int, text: str) -> None:
        self._pull_request(number).body = text
        self._touch(number, "edited")

    def comment(self, number: int, person: str, text: str) -> None:
        pull, now = self._pull_request(number), self.world.now()
        comment = Comment(self.world.next_id(), self._accounts[person], text, now, now)
        pull.comments.append(comment)
        pull.updated = now
        self.actions.webhooks.send_comment(self.acme, pull, comment)

    def edit_comment(self, number: int, text: str) -> None:
        pull = self._pull_request(number)
        comment = [each for each in pull.comments if each.author.login != BOT][-1]
        comment.body = text
        comment.updated = self.world.now()
        self.actions.webhooks.send_comment(self.acme, pull, comment, "edited")

    def delete_our_comments(self, number: int) -> None:
        comments = self._pull_request(number).comments
        comments[:] = [comment for comment in comments if comment.author.login != BOT]

    def label(self, number: int, label: str) -> None:
        known = {each.name: each for each in self.acme.labels}
        if label not in known:
            known[label] = Label(self.world.next_id(), label, "00aabb")
            self.acme.labels.append(known[label])
        self._pull_request(number).labels.append(known[label])
        self._touch(number, "label_updated", "pull_request_label")

    def unlabel(self, number: int, label: str) -> None:
        labels = self._pull_request(number).labels
        labels[:] = [each for each in labels if each.name != label]
        self._touch(number, "label_updated", "pull_request_label")

    # Reviews.

    def approve(self, number: int, person: str) -> None:
        self._review(number, person, "APPROVED")

    def request_changes(self, number: int, person: str) -> None:
        self._review(number, person, "REQUEST_CHANGES")

    def request_review(self, number: int, person: str) -> None:
        self.actions.request_review(self.acme, self._pull_request(number), self._accounts[person])

    def request_team_review(self, number: int, team: str) -> None:
        self.actions.request_team_review(self._pull_request(number), team)

    def dismiss_reviews(self, number: int, *, dismissed: bool = True) -> None:
        pull = self._pull_request(number)
        for review in pull.reviews:
            self.actions.dismiss(pull, review, dismissed=dismissed)

    def _review(self, number: int, person: str, state: str) -> None:
        self.actions.review(self.acme, self._pull_request(number), self._accounts[person], state)

    # Results of CI.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        status = Status(self.world.next_id(), self._ada, sha, check, state, url, "", self.world.now())
        self.acme.statuses.append(status)
        self.actions.webhooks.send_status(self.acme, status)

    def run_check(self, sha: Sha, check: str, url: str) -> None:
        """Gitea has no check suites: its Actions report statuses too."""
        self.report(sha, check, StatusState.SUCCESS, url)

    # Mergeability and protection.

    def hide_mergeability(self, number: int) -> None:
        self._pull_request(number).mergeability_unknown = True

    def show_mergeability(self, number: int) -> None:
        self._pull_request(number).mergeability_unknown = False

    def protect_main(self) -> str:
        self.rule.enable_status_check, self.rule.status_check_contexts = True, [REQUIRED_STATUS]
        return REQUIRED_STATUS

    def satisfy_protection(self, sha: Sha) -> None:
        self.report(sha, REQUIRED_STATUS, StatusState.SUCCESS)

    # State.

    def base(self, number: int) -> str:
        return self._pull_request(number).base

    def head(self, number: int) -> Sha:
        return self._pull_request(number).head

    def is_open(self, number: int) -> bool:
        return self._pull_request(number).state == "open"

    def is_merged(self, number: int) -> bool:
        return self._pull_request(number).merged

    def labels(self, number: int) -> list[str]:
        return [label.name for label in self._pull_request(number).labels]

    def comments(self, number: int) -> list[ForgeComment]:
        return [
            ForgeComment(
                author=comment.author.login,
                text=comment.body,
                reactions=tuple(REACTIONS[each.content] for each in comment.reactions if each.login == BOT),
            )
            for comment in self._pull_request(number).comments
        ]

    def bot_status(self, sha: Sha) -> ForgeStatus | None:
        ours = [one for one in latest_statuses(self.acme, sha) if one.context == "mergeyard"]
        if not ours:
            return None
        return ForgeStatus(state=ours[-1].state, url=ours[-1].target_url, description=ours[-1].description)

    def drafts(self) -> dict[str, bool]:
        ours = (pull for pull in self.acme.pull_requests.values() if pull.author.login == BOT)
        return {pull.head_branch: pull.state == "open" for pull in ours if pull.draft}

    @property
    def _ada(self) -> Account:
        return self._accounts["ada"]

    def _repository(self, owner: str) -> Repository:
        repository = Repository(
            self.world.next_id(), self._accounts[owner], "app", self.world.git_server.create(f"{owner}/app")
        )
        self.world.repositories[repository.path] = repository
        return repository

    def _open(self, number: int, head: str, by: Account) -> None:
        pull = self.actions.open_pull_request(
            self.acme, by, {"head": head, "base": "main", "title": f"Change {number}"}
        )
        assert pull.number == number

    def _commit(self, repository: Repository, branch: str, files: Files) -> Sha:
        before = repository.origin.ref(branch)
        after = repository.origin.commit(branch, files)
        self.actions.on_refs_updated(repository, self._ada, {f"refs/heads/{branch}": (before, after)})
        return after

    def _set_title(self, number: int, title: str) -> None:
        self._pull_request(number).title = title
        self._touch(number, "edited")

    def _touch(self, number: int, action: str, event: str = "pull_request") -> None:
        self.actions.touch(self.acme, self._pull_request(number), self._ada, event, action)

    def _pull_request(self, number: int) -> PullRequest:
        return self.acme.pull_requests[number]
