"""The driver for the fake GitLab."""

from pathlib import Path

from mergeyard.domain.ids import SHA_PATTERN, Sha
from mergeyard.domain.pull_requests import StatusState
from mergeyard.ports.external import Clock
from mergeyard.settings import ForgeHost, Provider
from tests.support.forge_drivers.driver import (
    MAINTAINER,
    REACTIONS,
    SECRET,
    STRANGER,
    ForgeComment,
    ForgePaths,
    ForgeStatus,
)
from tests.support.forges.gitlab.api import API_ROOT
from tests.support.forges.gitlab.fake import FakeGitlab
from tests.support.forges.gitlab.world import (
    BOT,
    DEVELOPER,
    TOKEN,
    ApprovalRule,
    Hook,
    MergeRequest,
    Pipeline,
    Project,
)
from tests.support.repositories import Files

STATES = {
    StatusState.PENDING: "pending",
    StatusState.SUCCESS: "success",
    StatusState.FAILURE: "failed",
    StatusState.ERROR: "failed",
}
DRAFT_PREFIX = "Draft: "
MAINTAINER_LEVEL = 40
BRANCHES = "refs/heads/"


class GitlabDriver:
    command_prefix = "!merge"
    paths = ForgePaths(
        api="^/api/v4/",
        pull_request="/merge_requests/1$",
        merge="/merge_requests/[0-9]+/merge$",
        comments="/notes$",
        reactions="/award_emoji$",
        statuses=f"/commits/({SHA_PATTERN})/statuses$",
        drafts="/merge_requests$",
    )

    def __init__(self, root: Path, clock: Clock) -> None:
        self.gitlab = FakeGitlab(root, clock)
        self.actions = self.gitlab.actions
        self.project = self.gitlab.create_project("acme/app")
        self.project.merge_access["main"] = [{"access_level": DEVELOPER}]
        self.project.members[MAINTAINER] = MAINTAINER_LEVEL
        self.gitlab.world.user(MAINTAINER)
        self.origin = self.project.origin
        self.deliveries = self.gitlab.deliveries
        self.faults = self.gitlab.faults
        self.git_server = self.gitlab.git_server
        self._ada = self.gitlab.world.user("ada")
        self._head_projects: dict[int, Project] = {}
        url = self.gitlab.world.web_url
        self.settings = ForgeHost(
            provider=Provider.GITLAB, url=url, api_url=url + API_ROOT, token=TOKEN, webhook_secret=SECRET
        )

    def add_webhook(self, url: str) -> None:
        self.project.hooks.append(Hook(id=1, url=url, secret=SECRET))

    def close(self) -> None:
        self.gitlab.close()

    # Actions of users.

    def open(self, number: int, files: Files, base: str) -> None:
        self.origin.branch(f"feature{number}", base=base, files=files)
        self._open(number, self.project)

    def open_fork(self, number: int, files: Files) -> None:
        self.fork.origin.run("fetch", "--quiet", self.origin.url, "+refs/heads/main:refs/heads/main")
        self.fork.origin.branch(f"feature{number}", base="main", files=files)
        self._open(number, self.fork)
        request = self._request(number)
        request.author = self.gitlab.world.user(STRANGER)
        request.wants_collaboration = False

    @property
    def fork(self) -> Project:
        """Eve's fork, created when it is first needed. GitLab lets no member push to forks of a private project."""
        world, self.project.visibility = self.gitlab.world, "public"
        return world.projects.get("eve/app") or world.add_fork(self.git_server, self.project, "eve/app", "eve")

    def allow_edits(self, number: int) -> None:
        """The author lets members who can merge push to the branch in the fork."""
        self._request(number).wants_collaboration = True

    def retarget(self, number: int, base: str) -> None:
        self.actions.retarget(self.project, self._request(number), self._ada, base)

    def make_draft(self, number: int) -> None:
        self._update(number, title=DRAFT_PREFIX + self._request(number).title)

    def make_ready(self, number: int) -> None:
        self._update(number, title=self._request(number).title.removeprefix(DRAFT_PREFIX))

    def push(self, number: int, files: Files) -> Sha:
        return self.actions.commit(self._head_projects[number], f"feature{number}", files)

    def push_to_main(self, files: Files) -> Sha:
        return self.actions.commit(self.project, "main", files)

    def merge_by_hand(self, number: int) -> None:
        self.actions.merge(self.project, self._request(number), self._ada, "By hand")

    def close_pull_request(self, number: int) -> None:
        self._update(number, state="closed")

    def comment(self, number: int, person: str, text: str) -> None:
        self.actions.add_note(self.project, self._request(number), text, by=person)

    def edit_comment(self, number: int, text: str) -> None:
        request = self._request(number)
        note = [each for each in request.notes if each.author.username != BOT][-1]
        self.actions.edit_note(self.project, request, note, text)

    def delete_our_comments(self, number: int) -> None:
        notes = self._request(number).notes
        notes[:] = [note for note in notes if note.author.username != BOT]

    def describe(self, number: int, text: str) -> None:
        self._update(number, description=text)

    def label(self, number: int, label: str) -> None:
        self._update(number, labels=[*self.labels(number), label])

    def unlabel(self, number: int, label: str) -> None:
        self._update(number, labels=[each for each in self.labels(number) if each != label])

    # Results of CI.

    def report(self, sha: Sha, check: str, state: StatusState, url: str = "") -> None:
        home, pipeline = self._pipeline(sha)
        reported = self.actions.report_status(home, pipeline, check, STATES[state], by=self._ada)
        if reported is not None:
            reported.target_url = url or None

    def run_check(self, sha: Sha, check: str, url: str) -> None:  # noqa: ARG002
        """The URL of a job is determined by GitLab."""
        self.actions.add_job(*self._pipeline(sha), check, "success")

    # Mergeability and protection.

    def hide_mergeability(self, number: int) -> None:
        self._request(number).undecided = "checking"

    def show_mergeability(self, number: int) -> None:
        self._request(number).undecided = None

    def protect_main(self) -> str:
        self.project.pipelines_must_succeed = True
        return "pipeline"

    def satisfy_protection(self, sha: Sha) -> None:
        self.run_check(sha, "unit", "")

    # Rules for merge requests: only at GitLab.

    def require_approvals(self, *rules: ApprovalRule) -> None:
        self.actions.require_approvals(self.project, *rules)

    def approve(self, number: int, *people: str) -> None:
        self.actions.approve(self.project, self._request(number), *people)

    def unapprove(self, number: int, person: str) -> None:
        self.actions.unapprove(self.project, self._request(number), person)

    def request_changes(self, number: int, person: str) -> None:
        self.project.premium = True
        self.actions.request_changes(self.project, self._request(number), person)

    def withdraw_request(self, number: int, person: str) -> None:
        self._request(number).changes_requested_by.remove(person)
        self._update(number)

    def set_unresolved(self, number: int, count: int) -> None:
        """Sets the number of unresolved threads, in a project that wants them resolved."""
        self.project.discussions_must_be_resolved = True
        self._request(number).unresolved = count
        self._update(number)

    def set_external_check(self, number: int, name: str, status: str) -> None:
        """GitLab sends no webhook about it."""
        self._request(number).external_checks[name] = status

    def set_obstacle(self, number: int, status: str | None) -> None:
        """Another rule blocks it, or no longer. GitLab sends no webhook about it."""
        self._request(number).obstacle = status

    def give_role(self, person: str, level: int) -> None:
        self.project.members[person] = level

    # State.

    def head(self, number: int) -> Sha:
        return Sha(str(self._request(number).head))

    def base(self, number: int) -> str:
        return self._request(number).target_branch

    def is_open(self, number: int) -> bool:
        return self._request(number).state == "opened"

    def is_merged(self, number: int) -> bool:
        return self._request(number).state == "merged"

    def labels(self, number: int) -> list[str]:
        return self._request(number).labels

    def comments(self, number: int) -> list[ForgeComment]:
        return [
            ForgeComment(
                author=note.author.username,
                text=note.body,
                reactions=tuple(REACTIONS[each.name] for each in note.reactions if each.user.username == BOT),
            )
            for note in self._request(number).notes
        ]

    def bot_status(self, sha: Sha) -> ForgeStatus | None:
        ours = [one for one in self.project.statuses if one.sha == sha and one.name == "mergeyard" and not one.outdated]
        if not ours:
            return None
        return ForgeStatus(state=ours[-1].status, url=ours[-1].target_url or "", description=ours[-1].description or "")

    def drafts(self) -> dict[str, bool]:
        requests = self.project.merge_requests.values()
        ours = (request for request in requests if request.author.username == BOT)
        return {request.source_branch: request.state == "opened" for request in ours if request.draft}

    def _open(self, number: int, source: Project) -> None:
        request = self.actions.open_merge_request(
            self.project, f"feature{number}", title=f"Change {number}", source=source
        )
        assert request.iid == number
        self._head_projects[number] = source

    def _update(self, number: int, **facts: str | list[str]) -> None:
        self.actions.update(self.project, self._request(number), self._ada, **facts)

    def _request(self, number: int) -> MergeRequest:
        return self.project.merge_requests[number]

    def _pipeline(self, sha: Sha) -> tuple[Project, Pipeline]:
        """The latest pipeline of the commit, or a new one of its branch; with its project, which can be a fork."""
        for project in (self.project, *self._head_projects.values()):
            found = [pipeline for pipeline in project.pipelines if pipeline.sha == sha]
            if found:
                return project, found[-1]
            branches = [ref for ref, tip in project.origin.refs().items() if tip == sha and ref.startswith(BRANCHES)]
            if branches:
                return project, self.actions.add_pipeline(project, sha, branches[0].removeprefix(BRANCHES))
        return self.project, self.actions.add_pipeline(self.project, sha, "a-branch")
