"""Actions of users, CI and GitLab itself on a project; each sends its webhooks."""

import re

from mergeyard.domain.ids import Sha
from tests.support.forges.git_server import GitRequest, RefUpdates
from tests.support.forges.gitlab.rules import (
    BRANCHES,
    UNFINISHED,
    can_change_state,
    contains,
    detailed_merge_status,
    has_changes,
    is_protected,
    is_squashed,
    merge_base,
    pipeline_status,
)
from tests.support.forges.gitlab.webhooks import Webhooks
from tests.support.forges.gitlab.world import (
    ApprovalRule,
    CommitStatus,
    MergeRequest,
    Note,
    Pipeline,
    Project,
    Reaction,
    User,
    World,
)
from tests.support.repositories import Files, Origin

GITLAB = ("-c", "user.name=GitLab", "-c", "user.email=gitlab@example.org")


def merge_in_repository(project: Project, request: MergeRequest, message: str, squash_message: str) -> None:
    """A squash replaces all commits by one on the merge base; then a merge commit or a fast-forward follows."""
    origin, target = project.origin, project.origin.tip(request.target_branch)
    head = Sha(str(request.head))
    if is_squashed(project, request):
        tree, base = Sha(f"{head}^{{tree}}"), merge_base(origin, target, head)
        head = request.squash_commit = commit_tree(origin, tree, [base], squash_message)
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


REQUEST_REF = re.compile(r"refs/merge-requests/([0-9]+)/(?:head|merge)")
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
        squash: bool | None = None,
        remove_source_branch: bool = False,
    ) -> MergeRequest:
        """Without a choice, the setting of the project says whether its commits will be squashed."""
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
            fork=None if source is project else source,
            squash=project.squash_option in ("always", "default_on") if squash is None else squash,
            force_remove_source_branch=remove_source_branch,
        )
        project.merge_requests[request.iid] = request
        self._record_diff(project, request)
        self._send_merge_request_event(project, request, person, "open")
        return request

    def update(self, project: Project, request: MergeRequest, by: User, **facts: str | bool | list[str]) -> None:
        for name, value in facts.items():
            setattr(request, name, value)
        request.updated_at = self._world.now()
        self._send_merge_request_event(
            project, request, by, {"closed": "close", "opened": "reopen"}.get(str(facts.get("state")), "update")
        )

    def merge(
        self,
        project: Project,
        request: MergeRequest,
        by: User,
        message: str,
        squash_message: str = "Squash",
        *,
        removes_branch: bool | None = None,
    ) -> None:
        """GitLab merges it, and then deletes the source branch if the caller or the merge request wants that."""
        before = project.origin.tip(request.target_branch)
        merge_in_repository(project, request, message, squash_message)
        self.update(project, request, by, state="merged")
        ref = f"{BRANCHES}{request.target_branch}"
        self._webhooks.send_push(project, ref, before, project.origin.tip(ref), by)
        wants_removal = removes_branch or request.force_remove_source_branch
        if wants_removal and request.fork is None and not is_protected(project, request.source_branch):
            self.delete_branch(project, request.source_branch, by)

    def require_approvals(self, project: Project, *rules: ApprovalRule) -> None:
        """Makes the project a Premium one with these rules, and its approvers known."""
        project.premium, project.approval_rules = True, list(rules)
        for rule in rules:
            for name in (*rule.users, *(name for members in rule.groups.values() for name in members)):
                self._world.user(name)

    def approve(self, project: Project, request: MergeRequest, *people: str) -> None:
        for name in people:
            request.approvals.append(name)
            self._touch(project, request, self._world.user(name), "approved")

    def unapprove(self, project: Project, request: MergeRequest, name: str) -> None:
        request.approvals.remove(name)
        self._touch(project, request, self._world.user(name), "unapproved")

    def request_changes(self, project: Project, request: MergeRequest, name: str) -> None:
        request.changes_requested_by.append(name)
        self._touch(project, request, self._world.user(name), "update")

    # Git

    def commit(self, project: Project, branch: str, files: Files, *, by: str = "ada") -> Sha:
        ref = f"{BRANCHES}{branch}"
        before = project.origin.ref(branch)
        after = project.origin.commit(branch, files)
        self.on_refs_updated(project, self._world.user(by), {ref: (before, after)})
        return after

    def delete_branch(self, project: Project, branch: str, by: User) -> None:
        before = project.origin.ref(branch)
        if before is not None:
            project.origin.delete_ref(branch)
            self.on_refs_updated(project, by, {f"{BRANCHES}{branch}": (before, None)})

    def on_push(self, request: GitRequest, updates: RefUpdates) -> None:
        project = self._world.stored_at(request.repository)
        assert project, "the git server allowed the push"
        self.on_refs_updated(project, self._world.tokens[request.password].user, updates)

    def on_refs_updated(self, project: Project, by: User, updates: RefUpdates) -> None:
        """Updates the heads of merge requests, and marks those as merged whose head was pushed to the target branch.

        That comes first: a branch that one push merges and deletes was merged, also if it was a draft. All refs of the
        push have moved already: a head that moves together with its target branch gets an empty diff, whichever of the
        two GitLab looks at first, and stays open.
        """
        for ref, (old, new) in sorted(updates.items(), key=lambda update: (update[1][1] is None, update[0])):
            branch = ref.removeprefix(BRANCHES)
            self._webhooks.send_push(project, ref, old, new, by)
            for target in self._world.projects.values():
                for request in [one for one in target.merge_requests.values() if one.state == "opened"]:
                    if (request.source_project, request.source_branch) == (project.id, branch):
                        self._update_head(target, request, new, by)
                    elif target is project and request.target_branch == branch and new:
                        self._mark_merged_by_push(project, request, old, new, by)

    def _update_head(self, target: Project, request: MergeRequest, new: Sha | None, by: User) -> None:
        if new is None:
            self.update(target, request, by, state="closed")
        else:
            request.unrecorded_head, request.reads_until_recorded = new, self._world.reads_before_recording
            if not request.reads_until_recorded:
                self._record_head(target, request)
            self._touch(target, request, by, "update")

    def note_read(self, project: Project, request: MergeRequest) -> None:
        """GitLab goes on in the background while the merge request is read."""
        if request.unrecorded_head is not None:
            request.reads_until_recorded -= 1
            if request.reads_until_recorded < 0:
                self._record_head(project, request)

    def _record_head(self, project: Project, request: MergeRequest) -> None:
        request.head, request.unrecorded_head = request.unrecorded_head, None
        if project.premium and project.resets_approvals_on_push:
            request.approvals.clear()
        self._record_diff(project, request)

    def _mark_merged_by_push(
        self, project: Project, request: MergeRequest, old: Sha | None, new: Sha, by: User
    ) -> None:
        """Only if its recorded head is one of the pushed commits, and its recorded diff is not empty. The commit that
        merged it is the oldest one of the target branch itself that contains it."""
        head, origin = request.head, project.origin
        pushed = origin.run("rev-list", new, f"^{old}").decode().split() if old else []
        if head in pushed and not request.has_empty_diff:
            chain = origin.run("rev-list", "--first-parent", "--reverse", new, f"^{old}").decode().split()
            request.merge_commit = next(Sha(one) for one in chain if contains(origin, one, head))
            self.update(project, request, by, state="merged")
        elif head is not None:
            request.has_empty_diff = not has_changes(origin, new, head)

    def _record_diff(self, project: Project, request: MergeRequest) -> None:
        """Compares the head with the target branch as it is now, and shows the head in this project."""
        head, target = str(request.head), project.origin.ref(request.target_branch)
        if request.fork is not None:
            project.origin.run("fetch", "--quiet", request.fork.origin.url, head)
        project.origin.set_ref(f"refs/merge-requests/{request.iid}/head", head)
        request.has_empty_diff = target is not None and not has_changes(project.origin, target, head)

    def retarget(self, project: Project, request: MergeRequest, by: User, branch: str) -> None:
        self.update(project, request, by, target_branch=branch)
        self._record_diff(project, request)

    # Notes

    def add_note(self, project: Project, request: MergeRequest, text: str, *, by: str) -> Note:
        """Lines that are quick actions are executed and not stored; a note without other lines is not stored at all."""
        note = Note(self._world.next_id(), self._world.user(by), QUICK_ACTION.sub("", text).strip(), self._world.now())
        if note.body:
            request.notes.append(note)
            self._world.touch(request)
            self._webhooks.send_note(project, request, note, "create")
        self._run_quick_actions(project, request, note.author, text)
        return note

    def edit_note(self, project: Project, request: MergeRequest, note: Note, text: str) -> None:
        note.body = QUICK_ACTION.sub("", text).strip()
        note.updated_at = self._world.now()
        self._world.touch(request)
        self._webhooks.send_note(project, request, note, "update")
        self._run_quick_actions(project, request, note.author, text)

    def _run_quick_actions(self, project: Project, request: MergeRequest, by: User, text: str) -> None:
        for action in QUICK_ACTION.findall(text):
            if action == "close":
                self.update(project, request, by, state="closed")
            elif detailed_merge_status(project, request) == "mergeable":
                self.merge(project, request, by, "Merge")

    def react(self, note: Note, person: User, name: str) -> bool:
        reaction = Reaction(person, name)
        if reaction in note.reactions:
            return False
        note.reactions.append(reaction)
        note.updated_at = self._world.now()
        return True

    # CI

    def add_pipeline(
        self, project: Project, sha: Sha, ref: str, *, source: str = "push", status: str = "created"
    ) -> Pipeline:
        of_request = REQUEST_REF.fullmatch(ref)
        request = project.merge_requests.get(int(of_request[1])) if of_request else None
        pipeline = Pipeline(
            id=self._world.next_id(),
            sha=sha,
            ref=ref,
            source="merge_request_event" if of_request else source,
            created_at=self._world.now(),
            empty_status=status,
            merge_request=request and request.id,
        )
        project.pipelines.append(pipeline)
        return pipeline

    def add_merge_request_pipeline(
        self, project: Project, request: MergeRequest, *, status: str = "created", of: Project | None = None
    ) -> Pipeline:
        """A pipeline of the merge request. It tests the merged result if the project wants that, and then runs on a
        merge commit that no branch has. `of` is its project: that of the source branch if nothing is given."""
        home, head = of or request.fork or project, Sha(str(request.head))
        kind, sha = "head", head
        if project.premium and project.merge_pipelines_enabled:
            target = project.origin.tip(request.target_branch)
            tree = merged_tree(project.origin, target, head)
            kind, sha = "merge", commit_tree(project.origin, tree, [target, head], "Merged result")
        ref = f"refs/merge-requests/{request.iid}/{kind}"
        pipeline = self.add_pipeline(home, sha, ref, status=status)
        pipeline.merge_request, pipeline.source_sha = request.id, head if kind == "merge" else None
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
        """Changes the unfinished status of this account, or adds one. None if GitLab refuses this change of state."""
        current = [one for one in project.statuses if _is_current(one, pipeline, name) and one.author == by]
        known = next((one for one in current if not one.is_job and one.status in UNFINISHED), None)
        if known is not None and not can_change_state(known.status, status):
            return None
        if known is None:
            self._mark_outdated(project, pipeline, name)
            known = self._new_status(pipeline, name, status, by)
            project.statuses.append(known)
        known.status = status
        known.finished_at = None if status in UNFINISHED else self._world.now()
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

    def _touch(self, project: Project, request: MergeRequest, by: User, action: str) -> None:
        """What GitLab records with a system note only touches the merge request."""
        self._world.touch(request)
        self._send_merge_request_event(project, request, by, action)

    def _send_merge_request_event(self, project: Project, request: MergeRequest, by: User, action: str) -> None:
        self._webhooks.send_merge_request(project, request, by, action)


def _is_current(status: CommitStatus, pipeline: Pipeline, name: str) -> bool:
    return status.pipeline == pipeline.id and status.name == name and not status.outdated
