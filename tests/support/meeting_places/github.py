"""A GitHub to meet at."""

from pathlib import Path

from mergeyard.domain.ids import Sha
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.clock import Clock
from mergeyard.settings import ForgeHost, Provider
from tests.support.forges.github import merging
from tests.support.forges.github.facts import Change, Guard, Hook
from tests.support.forges.github.fake import FakeGithub
from tests.support.meeting_places.place import MAINTAINER, SECRET, SIGNS, US, Paths, Said, Shown
from tests.support.repositories import Files

EVENTS = ["pull_request", "pull_request_review", "issue_comment", "status", "check_run", "check_suite", "push"]
TOKEN = "github_pat_of_mergeyard"
GUARD = "guarded"
FOREVER = 1_000_000


class GithubPlace:
    word = "/merge"
    paths = Paths(
        api="^/api/v3/",
        pull="/pulls/1$",
        merge="/pulls/[0-9]+/merge$",
        comments="/issues/[0-9]+/comments$",
        reactions="/reactions$",
        statuses="/commits/[0-9a-f]{40}/status$",
        drafts="/pulls$",
    )

    def __init__(self, root: Path, clock: Clock) -> None:
        self.github = FakeGithub(root, clock)
        self.github.token(TOKEN, US)
        self.acme = self.github.repository("acme/app")
        self.acme.roles |= {US: "write", "ada": "write", MAINTAINER: "maintain"}
        self.origin = self.acme.origin
        self.deliveries = self.github.deliveries
        self.faults = self.github.faults
        self.rooms = self.github.rooms
        self.settings = ForgeHost(
            provider=Provider.GITHUB,
            url=self.github.pages,
            api_url=self.github.api,
            token=TOKEN,
            webhook_secret=SECRET,
        )

    def tell(self, address: str) -> None:
        self.acme.hooks.append(Hook(address=address, secret=SECRET, events=EVENTS))

    def close(self) -> None:
        self.github.__exit__()

    # What people do.

    def open(self, number: int, files: Files, upon: str) -> None:
        self._open(number, files, upon, "acme/app")

    def open_fork(self, number: int, files: Files) -> None:
        self._open(number, files, "main", "eve/app")

    def make_draft(self, number: int) -> None:
        self.acme.edits(number, "converted_to_draft", draft=True)

    def make_ready(self, number: int) -> None:
        self.acme.edits(number, "ready_for_review", draft=False)

    def push(self, number: int, files: Files) -> Sha:
        change = self._change(number)
        if change.home == "acme/app":
            return self.acme.commits(change.branch, files)
        head = self.origin.commit(change.branch, files)
        self.origin.set(f"refs/pull/{number}/head", head)
        self.acme.edits(number, "synchronize", head=head)
        return head

    def point_fork_at(self, number: int, head: Sha) -> None:
        self.origin.set(f"refs/pull/{number}/head", head)
        self.acme.edits(number, "synchronize", head=head)

    def push_to_main(self, files: Files) -> Sha:
        return self.acme.commits("main", files)

    def merge_by_hand(self, number: int) -> None:
        merging.merge(self.acme, self._change(number), "merge", None, "By hand")

    def close_pull(self, number: int) -> None:
        self.acme.closes(number)

    def say(self, number: int, person: str, text: str) -> None:
        self.acme.says(number, person, text)

    def delete_our_comments(self, number: int) -> None:
        for said in [said for said in self.acme.said.values() if said.number == number and said.author == US]:
            del self.acme.said[said.id]

    def label(self, number: int, label: str) -> None:
        self.acme.labels(number, label)

    def unlabel(self, number: int, label: str) -> None:
        self.acme.unlabels(number, label)

    # What CI says.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        self.acme.reports(sha, check, state, url=url or None)

    def run_check(self, sha: Sha, check: str, url: str) -> None:
        self.acme.runs(sha, check, conclusion="success", url=url)

    # What the forge thinks.

    def ponder(self, number: int) -> None:
        self._change(number).being_checked = FOREVER

    def decide(self, number: int) -> None:
        self._change(number).being_checked = 0

    def protect_main(self) -> str:
        self.acme.guards["main"] = Guard(contexts=[GUARD])
        return GUARD

    def satisfy(self, sha: Sha) -> None:
        self.report(sha, GUARD, StatusState.SUCCESS)

    # What there is to see.

    def head(self, number: int) -> Sha:
        return self._change(number).head

    def is_open(self, number: int) -> bool:
        return self._change(number).open

    def is_merged(self, number: int) -> bool:
        return self._change(number).merged is not None

    def labels(self, number: int) -> list[str]:
        return self._change(number).labels

    def said(self, number: int) -> list[Said]:
        return [
            Said(
                author=each.author,
                text=each.text,
                signs=tuple(SIGNS[sign] for person, sign in each.reactions if person == US),
            )
            for each in self.acme.said.values()
            if each.number == number
        ]

    def shown(self, sha: Sha) -> Shown | None:
        found = self.acme.reported.get(sha, {}).get("mergeyard")
        return found and Shown(state=found.state, url=found.url or "", description=found.description or "")

    def drafts(self) -> dict[str, bool]:
        changes = self.acme.changes.values()
        return {change.branch: change.open for change in changes if change.draft and change.author == US}

    def _open(self, number: int, files: Files, upon: str, home: str) -> None:
        branch = f"feature{number}"
        self.origin.branch(branch, upon=upon, files=files)
        change = self.acme.opens(branch, title=f"Change {number}", home=home)
        assert change.number == number

    def _change(self, number: int) -> Change:
        return self.acme.changes[number]
