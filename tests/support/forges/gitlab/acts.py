"""What people, their CI and GitLab itself do to a project; every act is told to whoever listens."""

import re

from mergeyard.domain.ids import Sha
from tests.support.forges.git_rooms import Moves, Visit
from tests.support.forges.gitlab import merging
from tests.support.forges.gitlab.judging import first_obstacle, holds, status_of
from tests.support.forges.gitlab.letters import Letters
from tests.support.forges.gitlab.nouns import MergeRequest, Note, Person, Pipeline, Project, Reaction, Reported
from tests.support.forges.gitlab.world import World
from tests.support.repositories import Files

BRANCHES = "refs/heads/"
ORDER = re.compile(r"^/(close|merge)\b.*$", re.MULTILINE)
"""Two of the quick actions; whatever else stands in the line is not looked at."""


class Acts:
    def __init__(self, world: World, letters: Letters) -> None:
        self._world = world
        self._letters = letters

    # Merge requests

    def open(
        self,
        project: Project,
        branch: str,
        *,
        by: str = "ada",
        base: str = "main",
        title: str = "A change",
        text: str = "",
        source: Project | None = None,
    ) -> MergeRequest:
        source, person, now = source or project, self._world.person(by), self._world.now()
        request = MergeRequest(
            id=self._world.next_id(),
            iid=len(project.merge_requests) + 1,
            title=title,
            author=person,
            source_project=source.id,
            source_branch=branch,
            target_branch=base,
            head=source.origin.tip(branch),
            description=text,
            created_at=now,
            updated_at=now,
        )
        project.merge_requests[request.iid] = request
        self._show_head(project, request, source)
        self._tell(project, request, person, "open")
        return request

    def change(self, project: Project, request: MergeRequest, by: Person, **facts: str | list[str]) -> None:
        for name, value in facts.items():
            setattr(request, name, value)
        self._tell(project, request, by, {"closed": "close", "opened": "reopen"}.get(str(facts.get("state")), "update"))

    def merge(self, project: Project, request: MergeRequest, by: Person, words: str, squash: str | None) -> None:
        before = project.origin.tip(request.target_branch)
        merging.merge(project, request, words, squash)
        self.change(project, request, by, state="merged")
        ref = f"{BRANCHES}{request.target_branch}"
        self._letters.push(project, ref, before, project.origin.tip(ref), by)

    # Git

    def commit(self, project: Project, branch: str, files: Files, *, by: str = "ada") -> Sha:
        ref = f"{BRANCHES}{branch}"
        before = project.origin.ref(branch)
        after = project.origin.commit(branch, files)
        self.moved(project, self._world.person(by), {ref: (before, after)})
        return after

    def pushed(self, visit: Visit, moves: Moves) -> None:
        self.moved(self._world.projects[visit.repository], self._world.tokens[visit.password].person, moves)

    def moved(self, project: Project, by: Person, moves: Moves) -> None:
        """GitLab follows source branches, and sees what was merged by a push into the target."""
        for ref, (old, new) in moves.items():
            branch = ref.removeprefix(BRANCHES)
            self._letters.push(project, ref, old, new, by)
            for target in self._world.projects.values():
                for request in [one for one in target.merge_requests.values() if one.state == "opened"]:
                    if (request.source_project, request.source_branch) == (project.id, branch):
                        self._follow(target, request, project, new, by)
                    elif target is project and request.target_branch == branch and new:
                        self._see_merged(project, request, old, new, by)

    def _follow(self, target: Project, request: MergeRequest, source: Project, new: Sha | None, by: Person) -> None:
        if new is None:
            self.change(target, request, by, state="closed")
        else:
            request.head = new
            self._show_head(target, request, source)
            self._tell(target, request, by, "update")

    def _see_merged(self, project: Project, request: MergeRequest, old: Sha | None, new: Sha, by: Person) -> None:
        if request.head and holds(project.origin, new, request.head) and not (old and holds(project.origin, old, new)):
            merges = project.origin.run(
                "rev-list", "--merges", "--ancestry-path", "--reverse", f"{request.head}..{new}"
            )
            request.merge_commit = Sha(merges.decode().split()[0]) if merges else None
            self.change(project, request, by, state="merged")

    def _show_head(self, project: Project, request: MergeRequest, source: Project) -> None:
        ref = f"refs/merge-requests/{request.iid}/head"
        if source is not project:
            project.origin.run("fetch", "--quiet", source.origin.url, str(request.head))
        project.origin.set(ref, str(request.head))

    # Words

    def say(self, project: Project, request: MergeRequest, text: str, *, by: str) -> Note:
        """GitLab obeys the lines that are orders, and keeps only the others: if there are none, it keeps nothing."""
        note = Note(self._world.next_id(), self._world.person(by), ORDER.sub("", text).strip(), self._world.now())
        if note.body:
            request.notes.append(note)
            self._letters.note(project, request, note)
        self._obey(project, request, note.author, text)
        return note

    def rewrite(self, project: Project, request: MergeRequest, note: Note, text: str) -> None:
        note.body = ORDER.sub("", text).strip()
        self._obey(project, request, note.author, text)

    def _obey(self, project: Project, request: MergeRequest, by: Person, text: str) -> None:
        for order in ORDER.findall(text):
            if order == "close":
                self.change(project, request, by, state="closed")
            elif first_obstacle(project, request) == "mergeable":
                self.merge(project, request, by, "Merge", None)

    def react(self, note: Note, person: Person, name: str) -> bool:
        reaction = Reaction(person, name)
        if reaction in note.reactions:
            return False
        note.reactions.append(reaction)
        return True

    # CI

    def pipeline(
        self, project: Project, sha: Sha, ref: str, *, source: str = "push", status: str = "created"
    ) -> Pipeline:
        pipeline = Pipeline(
            id=self._world.next_id(),
            sha=sha,
            ref=ref,
            source=source,
            created_at=self._world.now(),
            empty_status=status,
        )
        project.pipelines.append(pipeline)
        return pipeline

    def job(
        self,
        project: Project,
        pipeline: Pipeline,
        name: str,
        status: str,
        *,
        allow_failure: bool = False,
        is_bridge: bool = False,
    ) -> Reported:
        """A job of this name; the one that was there before was retried. Its status has no `target_url`."""
        self._outdate(project, pipeline, name)
        job = self._reported(pipeline, name, status, self._world.person("ada"))
        job.is_job, job.is_bridge, job.allow_failure = True, is_bridge, allow_failure
        project.reported.append(job)
        self._tell_checks(project, pipeline, job)
        return job

    def report(self, project: Project, pipeline: Pipeline, name: str, status: str, *, by: Person) -> Reported | None:
        """None: it says so already."""
        known = next((one for one in project.reported if _is_current(one, pipeline, name)), None)
        if known is not None and known.status == status and status in ("pending", "running"):
            return None
        if known is None or known.status not in ("pending", "running"):
            self._outdate(project, pipeline, name)
            known = self._reported(pipeline, name, status, by)
            project.reported.append(known)
        known.status = status
        known.finished_at = None if status in ("pending", "running") else self._world.now()
        self._tell_checks(project, pipeline, known)
        return known

    def _reported(self, pipeline: Pipeline, name: str, status: str, by: Person) -> Reported:
        return Reported(
            id=self._world.next_id(),
            author=by,
            sha=pipeline.sha,
            name=name,
            status=status,
            pipeline=pipeline.id,
            created_at=self._world.now(),
        )

    def _outdate(self, project: Project, pipeline: Pipeline, name: str) -> None:
        for one in project.reported:
            one.outdated |= _is_current(one, pipeline, name)

    def _tell_checks(self, project: Project, pipeline: Pipeline, one: Reported) -> None:
        if one.is_job:
            self._letters.job(project, one, one.author)
        self._letters.pipeline(project, pipeline, status_of(project, pipeline), one.author)

    def _tell(self, project: Project, request: MergeRequest, by: Person, action: str) -> None:
        request.updated_at = self._world.now()
        self._letters.merge_request(project, request, by, action)


def _is_current(one: Reported, pipeline: Pipeline, name: str) -> bool:
    return one.pipeline == pipeline.id and one.name == name and not one.outdated
