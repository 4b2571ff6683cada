"""Actions of users, CI and GitLab itself on a project; each sends its webhooks."""

import re

from mergeyard.domain.ids import Sha
from tests.support.forges.git_server import GitRequest, RefUpdates
from tests.support.forges.gitlab.rules import contains, detailed_merge_status, pipeline_status
from tests.support.forges.gitlab.webhooks import Webhooks
from tests.support.forges.gitlab.world import CommitStatus, MergeRequest, Note, Pipeline, Project, Reaction, User, World
from tests.support.repositories import Files, Origin

GITLAB = ("-c", "user.name=GitLab", "-c", "user.email=gitlab@example.org")


def merge_in_repository(project: Project, request: MergeRequest, message: str, squash_message: str | None) -> None:
    """With a squash message, one commit replaces all others; then a merge commit or a fast-forward follows."""
    origin, target = project.origin, project.origin.tip(request.target_branch)
    head = Sha(str(request.head))
    if squash_message is not None:
        head = request.squash_commit = commit_tree(origin, merged_tree(origin, target, head), [target], squash_message)
    if project.merge_method == "ff":
        origin.set_ref(request.target_branch, head)
    else:
        request.merge_commit = commit_tree(origin, merged_tree(origin, target, head), [target, head], message)
        origin.set_ref(request.target_branch, request.merge_commit)


def merged_tree(origin: Origin, onto: str, head: str) -> Sha:
    tree = origin.merged_tree(onto, head)
    assert tree, "the merge request was mergeable a moment ago"
    return tree


def commit_tree(origin: Origin, tree: Sha, parents: list[Sha], message: str) -> Sha:
    lines = [argument for parent in parents for argument in ("-p", parent)]
    return Sha(origin.run(*GITLAB, "commit-tree", tree, *lines, stdin=message.encode()).decode().strip())


BRANCHES = "refs/heads/"
QUICK_ACTION = re.compile(r"^/(close|merge)\b.*$", re.MULTILINE)
"""Two of the quick actions; the rest of the line is ignored."""


class Actions:
    def __init__(self, world: World, webhooks: Webhooks) -> None:
        self._world = world
        self._webhooks = webhooks

    # Merge requests

    def open_merge_request(
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
        source, person, now = source or project, self._world.user(by), self._world.now()
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
        self._send_merge_request_event(project, request, person, "open")
        return request

    def update(self, project: Project, request: MergeRequest, by: User, **facts: str | list[str]) -> None:
        for name, value in facts.items():
            setattr(request, name, value)
        self._send_merge_request_event(
            project, request, by, {"closed": "close", "opened": "reopen"}.get(str(facts.get("state")), "update")
        )

    def merge(self, project: Project, request: MergeRequest, by: User, message: str, squash: str | None) -> None:
        before = project.origin.tip(request.target_branch)
        merge_in_repository(project, request, message, squash)
        self.update(project, request, by, state="merged")
        ref = f"{BRANCHES}{request.target_branch}"
        self._webhooks.send_push(project, ref, before, project.origin.tip(ref), by)

    # Git

    def commit(self, project: Project, branch: str, files: Files, *, by: str = "ada") -> Sha:
        ref = f"{BRANCHES}{branch}"
        before = project.origin.ref(branch)
        after = project.origin.commit(branch, files)
        self.on_refs_updated(project, self._world.user(by), {ref: (before, after)})
        return after

    def on_push(self, request: GitRequest, updates: RefUpdates) -> None:
        self.on_refs_updated(
            self._world.projects[request.repository], self._world.tokens[request.password].user, updates
        )

    def on_refs_updated(self, project: Project, by: User, updates: RefUpdates) -> None:
        """Updates the heads of merge requests, and marks those as merged whose head was pushed to the target branch."""
        for ref, (old, new) in updates.items():
            branch = ref.removeprefix(BRANCHES)
            self._webhooks.send_push(project, ref, old, new, by)
            for target in self._world.projects.values():
                for request in [one for one in target.merge_requests.values() if one.state == "opened"]:
                    if (request.source_project, request.source_branch) == (project.id, branch):
                        self._update_head(target, request, project, new, by)
                    elif target is project and request.target_branch == branch and new:
                        self._mark_merged_by_push(project, request, old, new, by)

    def _update_head(self, target: Project, request: MergeRequest, source: Project, new: Sha | None, by: User) -> None:
        if new is None:
            self.update(target, request, by, state="closed")
        else:
            request.head = new
            self._show_head(target, request, source)
            self._send_merge_request_event(target, request, by, "update")

    def _mark_merged_by_push(
        self, project: Project, request: MergeRequest, old: Sha | None, new: Sha, by: User
    ) -> None:
        if (
            request.head
            and contains(project.origin, new, request.head)
            and not (old and contains(project.origin, old, new))
        ):
            merges = project.origin.run(
                "rev-list", "--merges", "--ancestry-path", "--reverse", f"{request.head}..{new}"
            )
            request.merge_commit = Sha(merges.decode().split()[0]) if merges else None
            self.update(project, request, by, state="merged")

    def _show_head(self, project: Project, request: MergeRequest, source: Project) -> None:
        ref = f"refs/merge-requests/{request.iid}/head"
        if source is not project:
            project.origin.run("fetch", "--quiet", source.origin.url, str(request.head))
        project.origin.set_ref(ref, str(request.head))

    # Notes

    def add_note(self, project: Project, request: MergeRequest, text: str, *, by: str) -> Note:
        """Lines that are quick actions are executed and not stored; a note without other lines is not stored at all."""
        note = Note(self._world.next_id(), self._world.user(by), QUICK_ACTION.sub("", text).strip(), self._world.now())
        if note.body:
            request.notes.append(note)
            self._webhooks.send_note(project, request, note)
        self._run_quick_actions(project, request, note.author, text)
        return note

    def edit_note(self, project: Project, request: MergeRequest, note: Note, text: str) -> None:
        note.body = QUICK_ACTION.sub("", text).strip()
        self._run_quick_actions(project, request, note.author, text)

    def _run_quick_actions(self, project: Project, request: MergeRequest, by: User, text: str) -> None:
        for action in QUICK_ACTION.findall(text):
            if action == "close":
                self.update(project, request, by, state="closed")
            elif detailed_merge_status(project, request) == "mergeable":
                self.merge(project, request, by, "Merge", None)

    def react(self, note: Note, person: User, name: str) -> bool:
        reaction = Reaction(person, name)
        if reaction in note.reactions:
            return False
        note.reactions.append(reaction)
        return True

    # CI

    def add_pipeline(
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

    def add_job(
        self,
        project: Project,
        pipeline: Pipeline,
        name: str,
        status: str,
        *,
        allow_failure: bool = False,
        is_bridge: bool = False,
    ) -> CommitStatus:
        """Adds a job; an earlier one of this name counts as retried. Its status has no `target_url`."""
        self._mark_outdated(project, pipeline, name)
        job = self._new_status(pipeline, name, status, self._world.user("ada"))
        job.is_job, job.is_bridge, job.allow_failure = True, is_bridge, allow_failure
        project.statuses.append(job)
        self._send_check_events(project, pipeline, job)
        return job

    def report_status(
        self, project: Project, pipeline: Pipeline, name: str, status: str, *, by: User
    ) -> CommitStatus | None:
        """None if the status is unchanged, which GitLab refuses."""
        known = next((one for one in project.statuses if _is_current(one, pipeline, name)), None)
        if known is not None and known.status == status and status in ("pending", "running"):
            return None
        if known is None or known.status not in ("pending", "running"):
            self._mark_outdated(project, pipeline, name)
            known = self._new_status(pipeline, name, status, by)
            project.statuses.append(known)
        known.status = status
        known.finished_at = None if status in ("pending", "running") else self._world.now()
        self._send_check_events(project, pipeline, known)
        return known

    def _new_status(self, pipeline: Pipeline, name: str, status: str, by: User) -> CommitStatus:
        return CommitStatus(
            id=self._world.next_id(),
            author=by,
            sha=pipeline.sha,
            name=name,
            status=status,
            pipeline=pipeline.id,
            created_at=self._world.now(),
        )

    def _mark_outdated(self, project: Project, pipeline: Pipeline, name: str) -> None:
        for one in project.statuses:
            one.outdated |= _is_current(one, pipeline, name)

    def _send_check_events(self, project: Project, pipeline: Pipeline, status: CommitStatus) -> None:
        if status.is_job:
            self._webhooks.send_job(project, status, status.author)
        self._webhooks.send_pipeline(project, pipeline, pipeline_status(project, pipeline), status.author)

    def _send_merge_request_event(self, project: Project, request: MergeRequest, by: User, action: str) -> None:
        request.updated_at = self._world.now()
        self._webhooks.send_merge_request(project, request, by, action)


def _is_current(status: CommitStatus, pipeline: Pipeline, name: str) -> bool:
    return status.pipeline == pipeline.id and status.name == name and not status.outdated
