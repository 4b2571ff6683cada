"""A GitLab to meet at."""

from pathlib import Path

from mergeyard.domain.ids import Sha
from mergeyard.domain.statuses import StatusState
from mergeyard.ports.clock import Clock
from mergeyard.settings import ForgeHost, Provider
from tests.support.forges.gitlab.door import ROOT
from tests.support.forges.gitlab.fake import FakeGitlab
from tests.support.forges.gitlab.nouns import DEVELOPER, Hook, MergeRequest, Pipeline, Project
from tests.support.forges.gitlab.world import OURS, TOKEN
from tests.support.meeting_places.place import MAINTAINER, SECRET, SIGNS, Paths, Said, Shown
from tests.support.repositories import Files

STATES = {
    StatusState.PENDING: "pending",
    StatusState.SUCCESS: "success",
    StatusState.FAILURE: "failed",
    StatusState.ERROR: "failed",
}
DRAFT = "Draft: "
MAINTAINER_LEVEL = 40


class GitlabPlace:
    word = "!merge"
    paths = Paths(
        api="^/api/v4/",
        pull="/merge_requests/1$",
        merge="/merge_requests/[0-9]+/merge$",
        comments="/notes$",
        reactions="/award_emoji$",
        statuses="/commits/[0-9a-f]{40}/statuses$",
        drafts="/merge_requests$",
    )

    def __init__(self, root: Path, clock: Clock) -> None:
        self.gitlab = FakeGitlab(root, clock)
        self.acts = self.gitlab.acts
        self.project = self.gitlab.project("acme/app")
        self.project.mergers["main"] = [{"access_level": DEVELOPER}]
        self.project.members[MAINTAINER] = MAINTAINER_LEVEL
        self.gitlab.world.person(MAINTAINER)
        self.origin = self.project.origin
        self.deliveries = self.gitlab.deliveries
        self.faults = self.gitlab.faults
        self.rooms = self.gitlab.rooms
        self._ada = self.gitlab.world.person("ada")
        self._homes: dict[int, Project] = {}
        url = self.gitlab.world.pages
        self.settings = ForgeHost(
            provider=Provider.GITLAB, url=url, api_url=url + ROOT, token=TOKEN, webhook_secret=SECRET
        )

    def tell(self, address: str) -> None:
        self.project.hooks.append(Hook(id=1, url=address, secret=SECRET))

    def close(self) -> None:
        self.gitlab.close()

    # What people do.

    def open(self, number: int, files: Files, upon: str) -> None:
        self.origin.branch(f"feature{number}", upon=upon, files=files)
        self._open(number, self.project)

    def open_fork(self, number: int, files: Files) -> None:
        fork = self.gitlab.world.add_project(self.gitlab.rooms, "eve/app")
        fork.origin.run("fetch", "--quiet", self.origin.url, "refs/heads/main:refs/heads/main")
        fork.origin.branch(f"feature{number}", upon="main", files=files)
        self._open(number, fork)

    def make_draft(self, number: int) -> None:
        self._change(number, title=DRAFT + self._request(number).title)

    def make_ready(self, number: int) -> None:
        self._change(number, title=self._request(number).title.removeprefix(DRAFT))

    def push(self, number: int, files: Files) -> Sha:
        return self.acts.commit(self._homes[number], f"feature{number}", files)

    def push_to_main(self, files: Files) -> Sha:
        return self.acts.commit(self.project, "main", files)

    def merge_by_hand(self, number: int) -> None:
        self.acts.merge(self.project, self._request(number), self._ada, "By hand", None)

    def close_pull(self, number: int) -> None:
        self._change(number, state="closed")

    def say(self, number: int, person: str, text: str) -> None:
        self.acts.say(self.project, self._request(number), text, by=person)

    def delete_our_comments(self, number: int) -> None:
        notes = self._request(number).notes
        notes[:] = [note for note in notes if note.author.username != OURS]

    def label(self, number: int, label: str) -> None:
        self._change(number, labels=[*self.labels(number), label])

    def unlabel(self, number: int, label: str) -> None:
        self._change(number, labels=[each for each in self.labels(number) if each != label])

    # What CI says.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        reported = self.acts.report(self.project, self._pipeline(sha), check, STATES[state], by=self._ada)
        if reported is not None:
            reported.target_url = url or None

    def run_check(self, sha: Sha, check: str, url: str) -> None:  # noqa: ARG002
        """GitLab itself gives a job its page."""
        self.acts.job(self.project, self._pipeline(sha), check, "success")

    # What the forge thinks.

    def ponder(self, number: int) -> None:
        self._request(number).undecided = "checking"

    def decide(self, number: int) -> None:
        self._request(number).undecided = None

    def protect_main(self) -> str:
        self.project.pipelines_must_succeed = True
        return "pipeline"

    def satisfy(self, sha: Sha) -> None:
        self.run_check(sha, "unit", "")

    # What there is to see.

    def head(self, number: int) -> Sha:
        return Sha(str(self._request(number).head))

    def is_open(self, number: int) -> bool:
        return self._request(number).state == "opened"

    def is_merged(self, number: int) -> bool:
        return self._request(number).state == "merged"

    def labels(self, number: int) -> list[str]:
        return self._request(number).labels

    def said(self, number: int) -> list[Said]:
        return [
            Said(
                author=note.author.username,
                text=note.body,
                signs=tuple(SIGNS[each.name] for each in note.reactions if each.person.username == OURS),
            )
            for note in self._request(number).notes
        ]

    def shown(self, sha: Sha) -> Shown | None:
        ours = [one for one in self.project.reported if one.sha == sha and one.name == "mergeyard" and not one.outdated]
        if not ours:
            return None
        return Shown(state=ours[-1].status, url=ours[-1].target_url or "", description=ours[-1].description or "")

    def drafts(self) -> dict[str, bool]:
        requests = self.project.merge_requests.values()
        ours = (request for request in requests if request.author.username == OURS)
        return {request.source_branch: request.state == "opened" for request in ours if request.draft}

    def _open(self, number: int, source: Project) -> None:
        request = self.acts.open(self.project, f"feature{number}", title=f"Change {number}", source=source)
        assert request.iid == number
        self._homes[number] = source

    def _change(self, number: int, **facts: str | list[str]) -> None:
        self.acts.change(self.project, self._request(number), self._ada, **facts)

    def _request(self, number: int) -> MergeRequest:
        return self.project.merge_requests[number]

    def _pipeline(self, sha: Sha) -> Pipeline:
        """The latest of the commit; where there is none, one begins."""
        found = [pipeline for pipeline in self.project.pipelines if pipeline.sha == sha]
        return found[-1] if found else self.acts.pipeline(self.project, sha, "a-branch")
