"""One repository of the fake, and what people do there; every act is told by webhook."""

from itertools import count
from typing import Any

from mergeyard.domain.ids import Sha
from mergeyard.ports.clock import Clock
from tests.support.forges.deliveries import Deliveries
from tests.support.forges.git_rooms import Moves
from tests.support.forges.github.facts import Change, Guard, Hook, Ran, Reported, Said
from tests.support.forges.github.mail import Mail
from tests.support.repositories import Files, Origin

BRANCH = "refs/heads/"


class FakeRepository:
    def __init__(self, name: str, origin: Origin, clock: Clock, hooks: list[Hook], deliveries: Deliveries) -> None:
        """The webhooks may be those of an app: it then shares them with others."""
        self.name = name
        self.origin = origin
        self.clock = clock
        self.hooks = hooks
        self.mail = Mail(name, hooks, deliveries)
        self.changes: dict[int, Change] = {}
        self.said: dict[int, Said] = {}
        self.reported: dict[str, dict[str, Reported]] = {}
        self.ran: dict[str, list[Ran]] = {}
        self.guards: dict[str, Guard] = {}
        """Classic protection, by branch."""
        self.rulesets: dict[str, Guard] = {}
        self.update_rulesets: dict[str, Guard] = {}
        """Rulesets that only restrict updates, by branch; of a guard only the bypass list counts."""
        self.roles: dict[str, str] = {}
        """What people may do: admin, maintain, write, triage or read."""
        self.methods = {"merge", "squash", "rebase"}
        self.ids = count(1001)
        self._numbers = count(1)
        self._suites: dict[tuple[str, str], int] = {}
        """An app makes one for each commit, if it is not told otherwise."""

    @property
    def owner(self) -> str:
        return self.name.partition("/")[0]

    # What people do.

    def opens(self, branch: str, **facts: Any) -> Change:
        """A pull request of a branch; `home` names another repository, a fork."""
        number, head = next(self._numbers), self.origin.tip(branch)
        known: dict[str, Any] = {"title": "A change", "author": "ada", "base": "main", "home": self.name}
        change = Change(number=number, branch=branch, head=head, at=self.clock.now(), **(known | facts))
        self.changes[number] = change
        self._show_head(change)
        self.tell_of(change, "opened")
        return change

    def commits(self, branch: str, files: Files, merging: str | None = None) -> Sha:
        """Made elsewhere and pushed here."""
        before = self.origin.ref(branch)
        after = self.origin.commit(branch, files, merging=merging)
        self.after_push({BRANCH + branch: (before, after)})
        return after

    def edits(self, number: int, action: str = "edited", **facts: Any) -> None:
        change = self.changes[number]
        for name, fact in facts.items():
            setattr(change, name, fact)
        self.tell_of(change, action)

    def closes(self, number: int) -> None:
        self.edits(number, "closed", open=False)

    def labels(self, number: int, label: str) -> None:
        self.changes[number].labels.append(label)
        self.tell_of(self.changes[number], "labeled")

    def unlabels(self, number: int, label: str) -> None:
        self.changes[number].labels.remove(label)
        self.tell_of(self.changes[number], "unlabeled")

    def reviews(self, number: int, person: str, opinion: str) -> None:
        self.changes[number].reviews.append((person, opinion))
        self.touch(self.changes[number])
        self.mail.review(self.changes[number], person)

    def says(self, number: int, author: str, text: str) -> Said:
        now = self.clock.now()
        said = Said(id=next(self.ids), number=number, author=author, text=text, said_at=now, changed_at=now)
        self.said[said.id] = said
        self.touch(self.changes[number])
        self.mail.comment(said)
        return said

    def reports(self, sha: str, context: str, state: str, url: str | None = None, **facts: Any) -> Reported:
        status = Reported(context=context, state=state, at=self.clock.now(), url=url, **facts)
        self.reported.setdefault(sha, {})[context] = status
        self.mail.status(sha, status)
        return status

    def runs(self, sha: Sha, name: str, status: str = "completed", conclusion: str | None = None, **facts: Any) -> Ran:
        now = self.clock.now()
        known: dict[str, Any] = {
            "started_at": None if status == "queued" else now,
            "completed_at": now if status == "completed" else None,
            "suite": self._suites.setdefault((sha, facts.get("app", "")), len(self._suites) + 1),
        }
        run = Ran(id=next(self.ids), name=name, status=status, conclusion=conclusion, **(known | facts))
        self.ran.setdefault(sha, []).append(run)
        self.mail.check_run(sha, run)
        return run

    def latest_runs(self, sha: str) -> list[Ran]:
        """Of each suite."""
        return list({(run.suite, run.name): run for run in self.ran.get(sha, [])}.values())

    # What the forge does by itself.

    def touch(self, change: Change) -> None:
        change.at = self.clock.now()

    def tell_of(self, change: Change, action: str) -> None:
        self.touch(change)
        self.mail.pull_request(change, action)

    def after_push(self, moves: Moves) -> None:
        """Heads follow their branches, and whatever its base now holds is merged."""
        for ref, (before, after) in moves.items():
            if ref.startswith(BRANCH):
                self._follow(ref.removeprefix(BRANCH), after)
                self.mail.push(ref, before, after)

    def _follow(self, branch: str, tip: Sha | None) -> None:
        for change in [change for change in self.changes.values() if change.open]:
            if change.branch == branch and change.home == self.name:
                self._move_head(change, tip)
            elif change.base == branch and tip is not None and self.holds(tip, change.head):
                self.merged(change, tip)

    def _move_head(self, change: Change, tip: Sha | None) -> None:
        if tip is None:
            return self.closes(change.number)
        change.head = tip
        self._show_head(change)
        return self.tell_of(change, "synchronize")

    def merged(self, change: Change, commit: Sha) -> None:
        change.open, change.merged = False, commit
        self.tell_of(change, "closed")

    def holds(self, commit: Sha, ancestor: Sha) -> bool:
        return self.origin.run("merge-base", commit, ancestor).decode().strip() == ancestor

    def _show_head(self, change: Change) -> None:
        self.origin.set(f"refs/pull/{change.number}/head", change.head)
