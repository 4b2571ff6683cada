"""Handlers of the API of the fake GitLab."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.actions import Actions
from tests.support.forges.gitlab.payloads import Payloads
from tests.support.forges.gitlab.rules import contains, current_statuses, detailed_merge_status
from tests.support.forges.gitlab.world import DEVELOPER, MAINTAINER, MergeRequest, Note, Pipeline, Project, Token, World


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Call(Struct, frozen=True):
    """One API request: its token, its path parameters, and the parameters of query and body."""

    token: Token
    path_params: dict[str, str]
    params: dict[str, Any]


Handler = Callable[[Call], Any]
NOT_FOUND = "404 {} Not Found"


class ApiRoutes:
    def __init__(self, world: World, acts: Actions) -> None:
        self._world = world
        self._actions = acts

    def handlers(self) -> dict[str, Handler]:
        request = "/projects/:id/merge_requests/:iid"
        return {
            "GET /user": lambda call: self._payloads(call).user(call.token.user),
            "GET /personal_access_tokens/self": lambda call: self._payloads(call).token(call.token),
            "GET /projects/:id": lambda call: self._payloads(call).project(self._project(call)),
            "GET /projects/:id/members/all": self._members,
            "GET /groups/:group/members/all": self._group_members,
            "GET /projects/:id/hooks": self._hooks,
            "GET /projects/:id/protected_branches": self._protected,
            "GET /projects/:id/repository/branches/:branch": self._branch,
            "GET /projects/:id/repository/commits/:sha/statuses": self._statuses,
            "POST /projects/:id/statuses/:sha": self._report,
            "GET /projects/:id/pipelines": self._pipelines,
            "GET /projects/:id/pipelines/:pipeline/jobs": lambda call: self._jobs(call, bridges=False),
            "GET /projects/:id/pipelines/:pipeline/bridges": lambda call: self._jobs(call, bridges=True),
            "GET /projects/:id/merge_requests": self._list_merge_requests,
            "POST /projects/:id/merge_requests": self._open,
            f"GET {request}": lambda call: self._merge_request_payload(call, self._request(call)),
            f"PUT {request}": self._update,
            f"PUT {request}/merge": self._merge,
            f"GET {request}/approvals": lambda call: self._payloads(call).approvals(self._request(call)),
            f"GET {request}/notes": self._notes,
            f"POST {request}/notes": self._add_note,
            f"PUT {request}/notes/:note": self._edit_note,
            f"POST {request}/notes/:note/award_emoji": self._react,
        }

    # Projects

    def _members(self, call: Call) -> Any:
        query, members = call.params.get("query", "").lower(), self._project(call).members.items()
        payloads = self._payloads(call)
        return [payloads.member(self._world.user(name), level) for name, level in members if query in name]

    def _hooks(self, call: Call) -> Any:
        project = self._project(call, at_least=MAINTAINER)
        return [self._payloads(call).hook(project, hook) for hook in project.hooks]

    def _protected(self, call: Call) -> Any:
        project = self._project(call, at_least=DEVELOPER)
        rules = [(name, level, project.merge_access.get(name)) for name, level in project.protected.items()]
        return [self._payloads(call).protected_branch(*rule) for rule in rules]

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
        levels = [level for pattern, level in project.protected.items() if fnmatchcase(name, pattern)]
        return self._payloads(call).branch(project, name, sha, min(levels, default=DEVELOPER))

    # Checks

    def _statuses(self, call: Call) -> Any:
        project = self._project(call)
        return [
            self._payloads(call).commit_status(project, one)
            for one in current_statuses(project, Sha(call.path_params["sha"]))
        ]

    def _pipelines(self, call: Call) -> Any:
        project = self._project(call)
        found = [pipeline for pipeline in project.pipelines if call.params.get("sha") in (None, pipeline.sha)]
        return [self._payloads(call).pipeline(project, pipeline) for pipeline in reversed(found)]

    def _jobs(self, call: Call, *, bridges: bool) -> Any:
        """Includes retried jobs only on request."""
        project, number = self._project(call), int(call.path_params["pipeline"])
        pipeline = next((one for one in project.pipelines if one.id == number), None)
        if pipeline is None:
            raise ApiError(404, NOT_FOUND.format("Pipeline"))
        also_retried = call.params.get("include_retried") == "true"
        jobs = [job for job in project.statuses if job.pipeline == number and job.is_job]
        found = [job for job in jobs if job.is_bridge == bridges and (also_retried or not job.outdated)]
        return [self._payloads(call).job(project, pipeline, job) for job in found]

    def _report(self, call: Call) -> Any:
        project, sha = self._project(call, at_least=DEVELOPER), Sha(call.path_params["sha"])
        pipeline, name = self._pipeline_for(project, sha), call.params.get("name", "default")
        reported = self._actions.report_status(project, pipeline, name, call.params["state"], by=call.token.user)
        if reported is None:
            raise ApiError(400, "Cannot transition status via :enqueue from :pending (Reason(s): Status cannot …)")
        reported.target_url = call.params.get("target_url")
        reported.description = call.params.get("description")
        return self._payloads(call).commit_status(project, reported)

    def _pipeline_for(self, project: Project, sha: Sha) -> Pipeline:
        """A reported status joins the latest pipeline of the commit; if there is none, a new one is created."""
        found = [pipeline for pipeline in project.pipelines if pipeline.sha == sha]
        if found:
            return found[-1]
        branches = ((ref, tip) for ref, tip in project.origin.refs().items() if ref.startswith("refs/heads/"))
        ref = next((ref for ref, tip in branches if contains(project.origin, tip, sha)), None)
        if ref is None:
            raise ApiError(404, NOT_FOUND.format("References for commit"))
        return self._actions.add_pipeline(project, sha, ref.removeprefix("refs/heads/"), source="external")

    # Merge requests

    def _list_merge_requests(self, call: Call) -> Any:
        project, given = self._project(call), call.params
        found = [request for request in project.merge_requests.values() if _matches(request, given)]
        found.sort(key=lambda request: request.iid, reverse=True)
        if given.get("order_by") == "updated_at":
            found.sort(key=lambda request: request.updated_at, reverse=True)
        return [self._payloads(call).listed_merge_request(project, request) for request in found]

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
        )
        return self._merge_request_payload(call, request)

    def _update(self, call: Call) -> Any:
        project, request = self._project(call, at_least=DEVELOPER), self._request(call)
        if call.params.get("state_event") == "close" and request.state == "opened":
            self._actions.update(project, request, call.token.user, state="closed")
        if removed := call.params.get("remove_labels"):
            labels = [label for label in request.labels if label not in removed.split(",")]
            self._actions.update(project, request, call.token.user, labels=labels)
        return self._merge_request_payload(call, request)

    def _merge(self, call: Call) -> Any:
        project, request = self._project(call), self._request(call)
        needed = project.protected.get(request.target_branch, DEVELOPER)
        if project.members.get(call.token.user.username, 0) < needed:
            raise ApiError(401, "401 Unauthorized")
        obstacle = detailed_merge_status(project, request)
        if obstacle in ("conflict", "need_rebase"):
            raise ApiError(422, "Branch cannot be merged")
        if obstacle != "mergeable":
            raise ApiError(405, "405 Method Not Allowed")
        if call.params.get("sha", request.head) != request.head:
            raise ApiError(409, f"SHA does not match HEAD of source branch: {request.head}")
        if request.merge_error is not None:
            raise ApiError(422, "Branch cannot be merged")
        self._actions.merge(project, request, call.token.user, *_commit_messages(project, call.params))
        return self._merge_request_payload(call, request)

    # Notes

    def _notes(self, call: Call) -> Any:
        request = self._request(call)
        notes = request.notes if call.params.get("sort") == "asc" else request.notes[::-1]
        return [self._payloads(call).note(request, note) for note in notes]

    def _add_note(self, call: Call) -> Any:
        project, request = self._project(call), self._request(call)
        note = self._actions.add_note(project, request, call.params["body"], by=call.token.user.username)
        return self._payloads(call).note(request, note)

    def _edit_note(self, call: Call) -> Any:
        request, note = self._request(call), self._note(call)
        if note.author != call.token.user:
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
        level = 0 if project is None else project.members.get(call.token.user.username, 0)
        if project is None or level == 0:
            raise ApiError(404, NOT_FOUND.format("Project"))
        if level < at_least:
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


def _matches(request: MergeRequest, given: dict[str, Any]) -> bool:
    state_matches = given.get("state", "all") in ("all", request.state)
    source_matches = given.get("source_branch") in (None, request.source_branch)
    return state_matches and source_matches and given.get("target_branch") in (None, request.target_branch)


def _commit_messages(project: Project, given: dict[str, Any]) -> tuple[str, str | None]:
    squash = given.get("squash", False) or project.squash_option == "always"
    return given.get("merge_commit_message", "Merge"), given.get("squash_commit_message", "Squash") if squash else None
