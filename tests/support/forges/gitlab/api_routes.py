"""Handlers of the API of the fake GitLab."""

from collections.abc import Callable, Sequence
from subprocess import CalledProcessError
from typing import Any

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.actions import Actions
from tests.support.forges.gitlab.payloads import Payloads
from tests.support.forges.gitlab.rules import (
    can_collaborate,
    can_merge,
    can_push,
    contains,
    current_statuses,
    detailed_merge_status,
    is_protected,
    is_signed,
    merge_access,
    merge_request_pipelines,
    must_be_rebased,
    push_access,
)
from tests.support.forges.gitlab.world import (
    DEVELOPER,
    LIST_CACHE_TIME,
    MAINTAINER,
    MergeRequest,
    Note,
    Pipeline,
    Project,
    Token,
    World,
)


class ApiError(Exception):
    def __init__(
        self, status: int, message: Any, *, member: str = "message", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {member: message}
        self.headers = headers or {}


class Call(Struct, frozen=True):
    """One API request: its token, its path parameters, and the parameters of query and body."""

    token: Token
    path_params: dict[str, str]
    params: dict[str, Any]


Handler = Callable[[Call], Any]
"""A list is cut into pages afterwards. Its items that are None belong to the account's page but are not shown."""
NOT_FOUND = "404 {} Not Found"
REPORTED_STATES = ("pending", "running", "success", "failed", "canceled")
TAKES_SKIPPED_SINCE = (17, 0)
"""Version 16.5 refuses `skipped` as the state of a commit status, the newest accepts it (gitlab-org/gitlab!168350)."""
REFUSES_CONFLICTS_WITH_405_SINCE = (19, 0)
"""From then on, GitLab also compares the head first. Releases of 2025 refuse conflicts with 422."""
TRANSITIONS = {"pending": "enqueue", "running": "run", "skipped": "skip"}
MAX_URL_CHARS = 255


class ApiRoutes:
    def __init__(self, world: World, acts: Actions) -> None:
        self._world = world
        self._actions = acts

    def handlers(self) -> dict[str, Handler]:
        request = "/projects/:id/merge_requests/:iid"
        return {
            "GET /user": lambda call: self._payloads(call).account(call.token.user),
            "GET /user/keys": self._ssh_keys,
            "GET /user/gpg_keys": self._gpg_keys,
            "GET /personal_access_tokens/self": lambda call: self._payloads(call).token(call.token),
            "GET /projects/:id": lambda call: self._payloads(call).project(self._project(call)),
            "GET /projects/:id/members/all": self._members,
            "GET /projects/:id/members/all/:user": self._member,
            "GET /projects/:id/push_rule": self._push_rule,
            "GET /groups/:group/members/all": self._group_members,
            "GET /projects/:id/hooks": self._hooks,
            "GET /projects/:id/protected_branches": self._protected,
            "GET /projects/:id/repository/branches/:branch": self._branch,
            "DELETE /projects/:id/repository/branches/:branch": self._delete_branch,
            "GET /projects/:id/repository/commits/:sha": self._commit,
            "GET /projects/:id/repository/commits/:sha/signature": self._signature,
            "GET /projects/:id/repository/commits/:sha/statuses": self._statuses,
            "POST /projects/:id/statuses/:sha": self._report,
            "GET /projects/:id/pipelines": self._pipelines,
            "GET /projects/:id/pipelines/:pipeline/jobs": lambda call: self._jobs(call, bridges=False),
            "GET /projects/:id/pipelines/:pipeline/bridges": lambda call: self._jobs(call, bridges=True),
            "GET /projects/:id/merge_requests": self._list_merge_requests,
            "POST /projects/:id/merge_requests": self._open,
            f"GET {request}": self._read_merge_request,
            f"PUT {request}": self._update,
            f"PUT {request}/merge": self._merge,
            f"GET {request}/commits": self._request_commits,
            f"GET {request}/pipelines": self._request_pipelines,
            f"GET {request}/approvals": self._approvals,
            f"GET {request}/approval_state": self._approval_state,
            f"GET {request}/discussions": lambda call: self._payloads(call).discussions(self._request(call)),
            f"GET {request}/reviewers": lambda call: self._payloads(call).reviewers(
                self._request(call), self._world.users
            ),
            f"GET {request}/status_checks": lambda call: self._payloads(call).external_checks(self._request(call)),
            f"GET {request}/notes": self._notes,
            f"POST {request}/notes": self._add_note,
            f"PUT {request}/notes/:note": self._edit_note,
            f"POST {request}/notes/:note/award_emoji": self._react,
        }

    # Projects

    def _members(self, call: Call) -> Any:
        project, query = self._project(call), call.params.get("query", "").lower()
        payloads, names = self._payloads(call), {**project.members, **project.invited}
        return [payloads.member(self._world.user(name), project.level(name)) for name in names if query in name]

    def _member(self, call: Call) -> Any:
        project = self._project(call)
        for name in (*project.members, *project.invited):
            person = self._world.user(name)
            if str(person.id) == call.path_params["user"]:
                return self._payloads(call).member(person, project.level(name))
        raise ApiError(404, NOT_FOUND.format("Member"))

    def _push_rule(self, call: Call) -> Any:
        """The free edition does not have this endpoint."""
        project = self._project(call)
        if not project.premium:
            raise ApiError(404, "404 Not Found")
        return self._payloads(call).push_rule(self._project(call, at_least=MAINTAINER))

    def _hooks(self, call: Call) -> Any:
        project = self._project(call, at_least=MAINTAINER)
        return [self._payloads(call).hook(project, hook) for hook in project.hooks]

    def _protected(self, call: Call) -> Any:
        project = self._project(call, at_least=DEVELOPER)
        return [
            self._payloads(call).protected_branch(
                project,
                name,
                self._describe(project, push_access(project, name)),
                self._describe(project, merge_access(project, name)),
            )
            for name in project.protected
        ]

    def _describe(self, project: Project, levels: list[dict[str, int]]) -> list[dict[str, Any]]:
        """Adds what GitLab shows to people: the name of a role, a user or a group. The free edition has only roles."""
        names = {person.id: person.username for person in self._world.users.values()}
        unset = {"user_id": None, "group_id": None} if project.premium else {}
        return [unset | access | {"access_level_description": _describe_access(access, names)} for access in levels]

    def _group_members(self, call: Call) -> Any:
        members = self._world.groups.get(int(call.path_params["group"]))
        if members is None:
            raise ApiError(404, NOT_FOUND.format("Group"))
        found = [name for name in members if call.params.get("query", "").lower() in name]
        return [self._payloads(call).member(self._world.user(name), DEVELOPER) for name in found]

    def _branch(self, call: Call) -> Any:
        project, name = self._project(call), call.path_params["branch"]
        sha = project.origin.ref(f"refs/heads/{name}")
        if sha is None:
            raise ApiError(404, NOT_FOUND.format("Branch"))
        person = call.token.user
        is_pushable = can_push(project, person, name) or can_collaborate(self._world, project, person, name)
        return self._payloads(call).branch(project, name, sha, can_push=is_pushable)

    def _delete_branch(self, call: Call) -> None:
        project, name = self._project(call, at_least=DEVELOPER), call.path_params["branch"]
        if project.origin.ref(f"refs/heads/{name}") is None:
            raise ApiError(404, NOT_FOUND.format("Branch"))
        if name == "main" or (is_protected(project, name) and project.level(call.token.user.username) < MAINTAINER):
            raise ApiError(403, "403 Forbidden")
        self._actions.delete_branch(project, name, call.token.user)

    def _commit(self, call: Call) -> Any:
        project, sha = self._project(call), Sha(call.path_params["sha"])
        if not _has_commit(project, sha):
            raise ApiError(404, NOT_FOUND.format("Commit"))
        parents = project.origin.run("show", "--no-patch", "--format=%P", sha).decode().split()
        return self._payloads(call).commit_detail(sha, parents)

    def _signature(self, call: Call) -> Any:
        """GitLab answers 404 for a commit without a signature."""
        project, sha = self._project(call), call.path_params["sha"]
        if not _has_commit(project, sha) or not is_signed(project.origin, sha):
            raise ApiError(404, NOT_FOUND.format("Signature"))
        return self._payloads(call).signature(project.origin.run("cat-file", "commit", sha))

    def _ssh_keys(self, call: Call) -> Any:
        keys = self._world.ssh_keys.get(call.token.user.username, [])
        return [self._payloads(call).ssh_key(number, key) for number, key in enumerate(keys)]

    def _gpg_keys(self, call: Call) -> Any:
        keys = self._world.gpg_keys.get(call.token.user.username, [])
        return [self._payloads(call).gpg_key(number, key) for number, key in enumerate(keys)]

    # Checks

    def _statuses(self, call: Call) -> Any:
        project = self._project(call)
        return [
            self._payloads(call).commit_status(project, one)
            for one in current_statuses(project, Sha(call.path_params["sha"]))
            if call.params.get("name") in (None, one.name)
        ]

    def _pipelines(self, call: Call) -> Any:
        project = self._project_with_ci(call)
        found = [pipeline for pipeline in project.pipelines if call.params.get("sha") in (None, pipeline.sha)]
        return [self._payloads(call).pipeline(project, pipeline) for pipeline in reversed(found)]

    def _jobs(self, call: Call, *, bridges: bool) -> Any:
        """Includes retried jobs only on request. Without CI/CD, jobs can be read and bridges cannot."""
        project = self._project_with_ci(call) if bridges else self._project(call)
        number = int(call.path_params["pipeline"])
        pipeline = next((one for one in project.pipelines if one.id == number), None)
        if pipeline is None:
            raise ApiError(404, NOT_FOUND.format("Pipeline"))
        also_retried = call.params.get("include_retried") == "true"
        jobs = [job for job in project.statuses if job.pipeline == number and job.is_job]
        found = [job for job in jobs if job.is_bridge == bridges and (also_retried or not job.outdated)]
        return [self._payloads(call).job(project, pipeline, job) for job in found]

    def _report(self, call: Call) -> Any:
        project, sha, given = self._project(call, at_least=DEVELOPER), Sha(call.path_params["sha"]), call.params
        if given["state"] not in (*REPORTED_STATES, *(["skipped"] if project.version >= TAKES_SKIPPED_SINCE else [])):
            raise ApiError(400, "state does not have a valid value", member="error")
        if project.busy_statuses:
            project.busy_statuses -= 1
            raise ApiError(409, "Another update to this commit status is in progress")
        pipeline, name = self._pipeline_for(project, sha, given), given.get("name") or given.get("context", "default")
        if given.get("target_url") and project.blocks_urls:
            raise ApiError(400, {"target_url": ["is blocked: Requests to hosts and IPs not on the list are denied"]})
        if len(given.get("target_url") or "") > MAX_URL_CHARS:
            raise ApiError(400, {"target_url": [f"is too long (maximum is {MAX_URL_CHARS} characters)"]})
        before = [one.status for one in current_statuses(project, sha) if one.name == name]
        reported = self._actions.report_status(project, pipeline, name, given["state"], by=call.token.user)
        if reported is None:
            event = TRANSITIONS[given["state"]]
            reason = f'(Reason(s): Status cannot transition via "{event}")'
            raise ApiError(400, f"Cannot transition status via :{event} from :{before[-1]} {reason}")
        reported.target_url = given.get("target_url", reported.target_url)
        reported.description = given.get("description", reported.description)
        return self._payloads(call).commit_status(project, reported)

    def _pipeline_for(self, project: Project, sha: Sha, given: dict[str, Any]) -> Pipeline:
        """A reported status joins the newest pipeline of the commit, of the ref if one is given; if there is none, a
        new one is created: for that ref, or for the first branch that contains the commit."""
        if not _has_commit(project, sha):
            raise ApiError(404, NOT_FOUND.format("Commit"))
        found = [one for one in project.pipelines if one.sha == sha and given.get("ref") in (None, one.ref)]
        found = [one for one in found if str(given.get("pipeline_id", one.id)) == str(one.id)]
        if found:
            return found[-1]
        branches = ((ref, tip) for ref, tip in project.origin.refs().items() if ref.startswith("refs/heads/"))
        ref = given.get("ref") or next((ref for ref, tip in branches if contains(project.origin, tip, sha)), None)
        if ref is None:
            raise ApiError(404, NOT_FOUND.format("References for commit"))
        if "pipeline_id" in given:
            raise ApiError(404, NOT_FOUND.format("Pipeline for pipeline_id, sha and ref"))
        return self._actions.add_pipeline(project, sha, ref.removeprefix("refs/heads/"), source="external")

    # Merge requests

    def _list_merge_requests(self, call: Call) -> Any:
        project, given = self._project(call), call.params
        found = [request for request in project.merge_requests.values() if _matches(request, given)]
        if given.get("scope") == "created_by_me":
            found = [request for request in found if request.author == call.token.user]
        found.sort(key=lambda request: request.iid, reverse=True)
        if given.get("order_by") == "updated_at":
            found.sort(key=lambda request: request.updated_at, reverse=True)
        return [self._listed(call, project, request) for request in found]

    def _listed(self, call: Call, project: Project, request: MergeRequest) -> Any:
        """GitLab repeats an entry for hours, until one of the values that it knows the entry by changes."""
        entry = self._payloads(call).listed_merge_request(project, request)
        key = (call.token.user, request.id, request.updated_at, entry["merge_status"], *request.labels)
        expires_at, cached = self._world.listed.get(key, (None, entry))
        now = self._world.read_clock()
        if expires_at is None or expires_at <= now:
            self._world.listed[key] = (now + LIST_CACHE_TIME, entry)
            return entry
        return cached

    def _read_merge_request(self, call: Call) -> Any:
        self._actions.note_read(self._project(call), self._request(call))
        return self._merge_request_payload(call, self._request(call))

    def _request_commits(self, call: Call) -> Any:
        """Newest first."""
        project, request = self._project(call), self._request(call)
        found = project.origin.run("rev-list", str(request.head), f"^{project.origin.tip(request.target_branch)}")
        payloads, parents = self._payloads(call), list[str]()
        return [payloads.commit_detail(Sha(sha), parents) for sha in found.decode().split()]

    def _request_pipelines(self, call: Call) -> Any:
        """Also those that run in a fork, if the account can read its pipelines."""
        project, payloads = self._project(call), self._payloads(call)
        found = merge_request_pipelines(project, self._request(call))
        reader = call.token.user.username
        return [payloads.pipeline(home, one) for home, one in found if home.level(reader)]

    def _open(self, call: Call) -> Any:
        project, given = self._project(call, at_least=DEVELOPER), call.params
        duplicate = {"state": "opened", "source_branch": given["source_branch"]}
        if any(_matches(request, duplicate) for request in project.merge_requests.values()):
            raise ApiError(409, "Another open merge request already exists for this source branch")
        by = call.token.user.username
        request = self._actions.open_merge_request(
            project,
            given["source_branch"],
            by=by,
            base=given["target_branch"],
            title=given["title"],
            text=given.get("description", ""),
            squash=given.get("squash"),
            remove_source_branch=given.get("remove_source_branch", False),
        )
        return self._merge_request_payload(call, request)

    def _update(self, call: Call) -> Any:
        project, request = self._project(call, at_least=DEVELOPER), self._request(call)
        if call.params.get("state_event") == "close" and request.state == "opened":
            self._actions.update(project, request, call.token.user, state="closed")
        if removed := call.params.get("remove_labels"):
            labels = [label for label in request.labels if label not in removed.split(",")]
            self._actions.update(project, request, call.token.user, labels=labels)
        if target := call.params.get("target_branch"):
            wanted = {"state": "opened", "source_branch": request.source_branch, "target_branch": target}
            others = (one for one in project.merge_requests.values() if _matches(one, wanted))
            if any(one is not request and one.source_project == request.source_project for one in others):
                raise ApiError(409, ["Another open merge request already exists for this source branch"])
            self._actions.retarget(project, request, call.token.user, target)
        if "squash" in call.params:
            self._actions.update(project, request, call.token.user, squash=call.params["squash"])
        if "remove_source_branch" in call.params:
            wish = call.params["remove_source_branch"]
            self._actions.update(project, request, call.token.user, force_remove_source_branch=wish)
        return self._merge_request_payload(call, request)

    def _merge(self, call: Call) -> Any:
        project, request = self._project(call), self._request(call)
        if not can_merge(project, call.token.user, request.target_branch):
            raise ApiError(401, "401 Unauthorized")
        refusals = [self._find_obstacle(project, request), self._find_other_head(call, request)]
        if project.version >= REFUSES_CONFLICTS_WITH_405_SINCE:
            refusals.reverse()
        for refusal in refusals:
            if refusal is not None:
                raise refusal
        if request.merge_error is not None:
            raise ApiError(422, "Branch cannot be merged")
        if call.params.get("squash"):
            # Only true is taken over: GitLab ignores false here.
            request.squash = True
        self._actions.merge(
            project,
            request,
            call.token.user,
            call.params.get("merge_commit_message", "Merge"),
            call.params.get("squash_commit_message", "Squash"),
            removes_branch=call.params.get("should_remove_source_branch"),
        )
        return self._merge_request_payload(call, request)

    def _find_obstacle(self, project: Project, request: MergeRequest) -> ApiError | None:
        status = detailed_merge_status(project, request)
        cannot_merge = status in ("conflict", "broken_status") or must_be_rebased(project, request)
        if cannot_merge and status in ("conflict", "broken_status", "need_rebase", "mergeable"):
            is_new = project.version >= REFUSES_CONFLICTS_WITH_405_SINCE
            return ApiError(405, "405 Method Not Allowed") if is_new else ApiError(422, "Branch cannot be merged")
        return None if status == "mergeable" else ApiError(405, "405 Method Not Allowed")

    def _find_other_head(self, call: Call, request: MergeRequest) -> ApiError | None:
        if call.params.get("sha", request.head) == request.head:
            return None
        return ApiError(409, f"SHA does not match HEAD of source branch: {request.head}")

    def _approvals(self, call: Call) -> Any:
        return self._payloads(call).approvals(self._project(call), self._request(call), self._world.users)

    def _approval_state(self, call: Call) -> Any:
        """The free edition does not have this endpoint."""
        if not self._project(call).premium:
            raise ApiError(404, "404 Not Found")
        return self._payloads(call).approval_state(self._project(call), self._request(call), self._world.users)

    # Notes

    def _notes(self, call: Call) -> Any:
        """GitLab cuts the pages first, and then takes out the notes that the account cannot read."""
        request, wanted = self._request(call), call.params.get("activity_filter", "all_notes")
        hidden_kind = {"only_comments": True, "only_activity": False}.get(wanted)
        notes = [note for note in request.notes if note.system is not hidden_kind]
        ordered = notes if call.params.get("sort") == "asc" else notes[::-1]
        return [None if note.is_hidden else self._payloads(call).note(request, note) for note in ordered]

    def _add_note(self, call: Call) -> Any:
        project, request = self._project(call), self._request(call)
        note = self._actions.add_note(project, request, call.params["body"], by=call.token.user.username)
        return self._payloads(call).note(request, note)

    def _edit_note(self, call: Call) -> Any:
        """Maintainers can edit the notes of others."""
        request, note = self._request(call), self._note(call)
        if note.author != call.token.user and self._project(call).level(call.token.user.username) < MAINTAINER:
            raise ApiError(403, "403 Forbidden")
        self._actions.edit_note(self._project(call), request, note, call.params["body"])
        return self._payloads(call).note(request, note)

    def _react(self, call: Call) -> Any:
        note = self._note(call)
        if not self._actions.react(note, call.token.user, call.params["name"]):
            raise ApiError(404, "404 Award Emoji Name has already been taken Not Found")
        return self._payloads(call).reaction(note, note.reactions[-1])

    # Lookup

    def _payloads(self, call: Call) -> Payloads:
        return Payloads(self._world.web_url, call.token.user)

    def _merge_request_payload(self, call: Call, request: MergeRequest) -> Any:
        return self._payloads(call).merge_request(self._project(call), request)

    def _project(self, call: Call, *, at_least: int = 0) -> Project:
        project = self._world.find_project(call.path_params["id"])
        person = call.token.user.username
        if project is None or not project.is_visible_to(person):
            raise ApiError(404, NOT_FOUND.format("Project"))
        if project.level(person) < at_least:
            raise ApiError(403, "403 Forbidden")
        return project

    def _project_with_ci(self, call: Call) -> Project:
        project = self._project(call)
        if not project.has_ci:
            raise ApiError(403, "403 Forbidden")
        return project

    def _request(self, call: Call) -> MergeRequest:
        found = self._project(call).merge_requests.get(int(call.path_params["iid"]))
        if found is None:
            raise ApiError(404, "404 Not found")
        return found

    def _note(self, call: Call) -> Note:
        notes: Sequence[Note] = self._request(call).notes
        found = next((note for note in notes if str(note.id) == call.path_params["note"]), None)
        if found is None:
            raise ApiError(404, NOT_FOUND.format("Note"))
        return found


ROLES = {0: "No one", 30: "Developers + Maintainers", 40: "Maintainers", 60: "Administrators"}


def _describe_access(access: dict[str, int], names: dict[int, str]) -> str:
    if "user_id" in access:
        return names.get(access["user_id"], "Unknown user")
    if "group_id" in access:
        return f"Group {access['group_id']}"
    return "Deploy key" if "deploy_key_id" in access else ROLES[access["access_level"]]


def _matches(request: MergeRequest, given: dict[str, Any]) -> bool:
    state_matches = given.get("state", "all") in ("all", request.state)
    source_matches = given.get("source_branch") in (None, request.source_branch)
    return state_matches and source_matches and given.get("target_branch") in (None, request.target_branch)


def _has_commit(project: Project, sha: str) -> bool:
    try:
        return project.origin.run("cat-file", "-t", sha).strip() == b"commit"
    except CalledProcessError:
        return False
