"""A Gitea to meet at."""

from pathlib import Path

from mergeyard.domain.ids import Sha
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.clock import Clock
from mergeyard.settings import ForgeHost, Provider
from tests.support.forges.gitea.door import ROOT
from tests.support.forges.gitea.fake import FakeGitea
from tests.support.forges.gitea.judging import latest_statuses
from tests.support.forges.gitea.nouns import Account, Comment, Hook, Label, Pull, Repository, Rule, Status
from tests.support.meeting_places.place import MAINTAINER, SECRET, SIGNS, STRANGER, US, Paths, Said, Shown
from tests.support.repositories import Files

SCOPES = ("write:repository", "write:issue", "read:user")
EVENTS = ["push", "delete", "pull_request", "pull_request_sync", "pull_request_label", "pull_request_comment", "status"]
GUARD = "guarded"
DRAFT = "WIP: "


class GiteaPlace:
    word = "/merge"
    paths = Paths(
        api="^/api/v1/",
        pull="/pulls/1$",
        merge="/pulls/[0-9]+/merge$",
        comments="/issues/[0-9]+/comments$",
        reactions="/reactions$",
        statuses="/commits/[0-9a-f]{40}/status(es)?$",
        drafts="/pulls$",
    )

    def __init__(self, root: Path, clock: Clock) -> None:
        self.gitea = FakeGitea(root, clock).__enter__()
        self.world, self.acts = self.gitea.world, self.gitea.acts
        self._people = {name: self.world.make_account(name, "") for name in ("acme", "ada", US, STRANGER, MAINTAINER)}
        self.acme = self._repository("acme")
        self.acme.origin.commit("main", {"a.txt": "1"})
        self.acme.roles |= {"ada": "write", MAINTAINER: "admin", US: "admin"}
        self.acme.settings.allow_manual_merge = True
        self.origin = self.acme.origin
        self.deliveries = self.gitea.deliveries
        self.faults = self.gitea.faults
        self.rooms = self.world.rooms
        self.settings = ForgeHost(
            provider=Provider.GITEA,
            url=self.gitea.url,
            api_url=self.gitea.url + ROOT,
            token=self.world.make_token(self._people[US], *SCOPES),
            webhook_secret=SECRET,
        )

    def tell(self, address: str) -> None:
        hook = Hook(self.world.next_id(), address, SECRET, "json", EVENTS, active=True)
        self.acme.hooks.append(hook)

    def close(self) -> None:
        self.gitea.__exit__()

    # What people do.

    def open(self, number: int, files: Files, upon: str) -> None:
        self.origin.branch(f"feature{number}", upon=upon, files=files)
        self._open(number, f"feature{number}", self._ada)

    def open_fork(self, number: int, files: Files) -> None:
        fork = self._repository(STRANGER)
        fork.origin.run("fetch", "--quiet", self.origin.url, "refs/heads/main:refs/heads/main")
        fork.origin.branch(f"feature{number}", upon="main", files=files)
        self._open(number, f"{STRANGER}:feature{number}", self._people[STRANGER])

    def make_draft(self, number: int) -> None:
        self._entitle(number, DRAFT + self._pull(number).title)

    def make_ready(self, number: int) -> None:
        self._entitle(number, self._pull(number).title.removeprefix(DRAFT))

    def push(self, number: int, files: Files) -> Sha:
        return self._commit(self._pull(number).source, f"feature{number}", files)

    def push_to_main(self, files: Files) -> Sha:
        return self._commit(self.acme, "main", files)

    def merge_by_hand(self, number: int) -> None:
        self.acts.merge(self.acme, self._pull(number), self._ada, "merge", "By hand")

    def close_pull(self, number: int) -> None:
        self._pull(number).state = "closed"
        self._touch(number, "closed")

    def say(self, number: int, person: str, text: str) -> None:
        pull, now = self._pull(number), self.world.now()
        said = Comment(self.world.next_id(), self._people[person], text, now, now)
        pull.comments.append(said)
        pull.updated = now
        self.acts.letters.of_comment(self.acme, pull, said)

    def delete_our_comments(self, number: int) -> None:
        comments = self._pull(number).comments
        comments[:] = [said for said in comments if said.author.login != US]

    def label(self, number: int, label: str) -> None:
        known = {each.name: each for each in self.acme.labels}
        if label not in known:
            known[label] = Label(self.world.next_id(), label, "00aabb")
            self.acme.labels.append(known[label])
        self._pull(number).labels.append(known[label])
        self._touch(number, "label_updated", "pull_request_label")

    def unlabel(self, number: int, label: str) -> None:
        labels = self._pull(number).labels
        labels[:] = [each for each in labels if each.name != label]
        self._touch(number, "label_updated", "pull_request_label")

    # What CI says.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        status = Status(self.world.next_id(), self._ada, sha, check, state, url, "", self.world.now())
        self.acme.statuses.append(status)
        self.acts.letters.of_status(self.acme, status)

    def run_check(self, sha: Sha, check: str, url: str) -> None:
        """Gitea knows no suites: what its own Actions say are statuses too."""
        self.report(sha, check, StatusState.SUCCESS, url)

    # What the forge thinks.

    def ponder(self, number: int) -> None:
        self._pull(number).checking = True

    def decide(self, number: int) -> None:
        self._pull(number).checking = False

    def protect_main(self) -> str:
        self.acme.rules.append(
            Rule(rule_name="main", enable_push=True, enable_status_check=True, status_check_contexts=[GUARD])
        )
        return GUARD

    def satisfy(self, sha: Sha) -> None:
        self.report(sha, GUARD, StatusState.SUCCESS)

    # What there is to see.

    def head(self, number: int) -> Sha:
        return self._pull(number).head

    def is_open(self, number: int) -> bool:
        return self._pull(number).state == "open"

    def is_merged(self, number: int) -> bool:
        return self._pull(number).merged

    def labels(self, number: int) -> list[str]:
        return [label.name for label in self._pull(number).labels]

    def said(self, number: int) -> list[Said]:
        return [
            Said(
                author=said.author.login,
                text=said.body,
                signs=tuple(SIGNS[each.content] for each in said.reactions if each.login == US),
            )
            for said in self._pull(number).comments
        ]

    def shown(self, sha: Sha) -> Shown | None:
        ours = [one for one in latest_statuses(self.acme, sha) if one.context == "mergeyard"]
        if not ours:
            return None
        return Shown(state=ours[-1].state, url=ours[-1].target_url, description=ours[-1].description)

    def drafts(self) -> dict[str, bool]:
        ours = (pull for pull in self.acme.pulls.values() if pull.author.login == US)
        return {pull.branch: pull.state == "open" for pull in ours if pull.draft}

    @property
    def _ada(self) -> Account:
        return self._people["ada"]

    def _repository(self, owner: str) -> Repository:
        made = Repository(self.world.next_id(), self._people[owner], "app", self.world.rooms.made(f"{owner}/app"))
        self.world.repositories[made.path] = made
        return made

    def _open(self, number: int, head: str, by: Account) -> None:
        pull = self.acts.open(self.acme, by, {"head": head, "base": "main", "title": f"Change {number}"})
        assert pull.number == number

    def _commit(self, repository: Repository, branch: str, files: Files) -> Sha:
        before = repository.origin.ref(branch)
        after = repository.origin.commit(branch, files)
        self.acts.moved(repository, self._ada, {f"refs/heads/{branch}": (before, after)})
        return after

    def _entitle(self, number: int, title: str) -> None:
        self._pull(number).title = title
        self._touch(number, "edited")

    def _touch(self, number: int, action: str, event: str = "pull_request") -> None:
        self.acts.touch(self.acme, self._pull(number), self._ada, event, action)

    def _pull(self, number: int) -> Pull:
        return self.acme.pulls[number]
