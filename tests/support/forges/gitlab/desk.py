"""Answers what the API of GitLab is asked, from the state of the world."""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.gitlab.acts import Acts
from tests.support.forges.gitlab.judging import first_obstacle, holds, reported_of
from tests.support.forges.gitlab.nouns import DEVELOPER, MAINTAINER, MergeRequest, Note, Pipeline, Project, Token
from tests.support.forges.gitlab.showing import Showing
from tests.support.forges.gitlab.world import World


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Call(Struct, frozen=True):
    """What is asked, by whom: the parts of the address by name, and the parameters."""

    token: Token
    parts: dict[str, str]
    given: dict[str, Any]


Answer = Callable[[Call], Any]
NOT_FOUND = "404 {} Not Found"


class Desk:
    def __init__(self, world: World, acts: Acts) -> None:
        self._world = world
        self._acts = acts

    def answers(self) -> dict[str, Answer]:
        request = "/projects/:id/merge_requests/:iid"
        return {
            "GET /user": lambda call: self._show(call).person(call.token.person),
            "GET /personal_access_tokens/self": lambda call: self._show(call).token(call.token),
            "GET /projects/:id": lambda call: self._show(call).project(self._project(call)),
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
            "GET /projects/:id/merge_requests": self._list,
            "POST /projects/:id/merge_requests": self._open,
            f"GET {request}": lambda call: self._shown(call, self._request(call)),
            f"PUT {request}": self._update,
            f"PUT {request}/merge": self._merge,
            f"GET {request}/approvals": lambda call: self._show(call).approvals(self._request(call)),
            f"GET {request}/notes": self._notes,
            f"POST {request}/notes": self._say,
            f"PUT {request}/notes/:note": self._edit,
            f"POST {request}/notes/:note/award_emoji": self._react,
        }

    # Projects

    def _members(self, call: Call) -> Any:
        wanted, members = call.given.get("query", "").lower(), self._project(call).members.items()
        show = self._show(call)
        return [show.member(self._world.person(name), level) for name, level in members if wanted in name]

    def _hooks(self, call: Call) -> Any:
        project = self._project(call, at_least=MAINTAINER)
        return [self._show(call).hook(project, hook) for hook in project.hooks]

    def _protected(self, call: Call) -> Any:
        project = self._project(call, at_least=DEVELOPER)
        rules = [(name, level, project.mergers.get(name)) for name, level in project.protected.items()]
        return [self._show(call).protected_branch(*rule) for rule in rules]

    def _group_members(self, call: Call) -> Any:
        members = self._world.groups.get(int(call.parts["group"]))
        if members is None:
            raise Refusal(404, NOT_FOUND.format("Group"))
        wanted = [name for name in members if call.given.get("query", "").lower() in name]
        return [self._show(call).member(self._world.person(name), DEVELOPER) for name in wanted]

    def _branch(self, call: Call) -> Any:
        project, name = self._project(call), call.parts["branch"]
        sha = project.origin.ref(f"refs/heads/{name}")
        if sha is None:
            raise Refusal(404, NOT_FOUND.format("Branch"))
        levels = [level for pattern, level in project.protected.items() if fnmatchcase(name, pattern)]
        return self._show(call).branch(project, name, sha, min(levels, default=DEVELOPER))

    # Checks

    def _statuses(self, call: Call) -> Any:
        project = self._project(call)
        return [self._show(call).reported(project, one) for one in reported_of(project, Sha(call.parts["sha"]))]

    def _pipelines(self, call: Call) -> Any:
        project = self._project(call)
        found = [pipeline for pipeline in project.pipelines if call.given.get("sha") in (None, pipeline.sha)]
        return [self._show(call).pipeline(project, pipeline) for pipeline in reversed(found)]

    def _jobs(self, call: Call, *, bridges: bool) -> Any:
        """Retried ones only where they are asked for."""
        project, number = self._project(call), int(call.parts["pipeline"])
        pipeline = next((one for one in project.pipelines if one.id == number), None)
        if pipeline is None:
            raise Refusal(404, NOT_FOUND.format("Pipeline"))
        also_retried = call.given.get("include_retried") == "true"
        inside = [one for one in project.reported if one.pipeline == number and one.is_job]
        found = [one for one in inside if one.is_bridge == bridges and (also_retried or not one.outdated)]
        return [self._show(call).job(project, pipeline, one) for one in found]

    def _report(self, call: Call) -> Any:
        project, sha = self._project(call, at_least=DEVELOPER), Sha(call.parts["sha"])
        pipeline, name = self._pipeline_for(project, sha), call.given.get("name", "default")
        reported = self._acts.report(project, pipeline, name, call.given["state"], by=call.token.person)
        if reported is None:
            raise Refusal(400, "Cannot transition status via :enqueue from :pending (Reason(s): Status cannot …)")
        reported.target_url = call.given.get("target_url")
        reported.description = call.given.get("description")
        return self._show(call).reported(project, reported)

    def _pipeline_for(self, project: Project, sha: Sha) -> Pipeline:
        """What is reported becomes part of the latest pipeline; where there is none, it gets one of its own."""
        found = [pipeline for pipeline in project.pipelines if pipeline.sha == sha]
        if found:
            return found[-1]
        branches = ((ref, tip) for ref, tip in project.origin.refs().items() if ref.startswith("refs/heads/"))
        ref = next((ref for ref, tip in branches if holds(project.origin, tip, sha)), None)
        if ref is None:
            raise Refusal(404, NOT_FOUND.format("References for commit"))
        return self._acts.pipeline(project, sha, ref.removeprefix("refs/heads/"), source="external")

    # Merge requests

    def _list(self, call: Call) -> Any:
        project, given = self._project(call), call.given
        found = [request for request in project.merge_requests.values() if _is_wanted(request, given)]
        if given.get("order_by") == "updated_at":
            found.sort(key=lambda request: request.updated_at, reverse=True)
        return [self._show(call).listed(project, request) for request in found]

    def _open(self, call: Call) -> Any:
        project, given = self._project(call, at_least=DEVELOPER), call.given
        twin = {"state": "opened", "source_branch": given["source_branch"]}
        if any(_is_wanted(request, twin) for request in project.merge_requests.values()):
            raise Refusal(409, "Another open merge request already exists for this source branch")
        by = call.token.person.username
        request = self._acts.open(
            project,
            given["source_branch"],
            by=by,
            base=given["target_branch"],
            title=given["title"],
            text=given.get("description", ""),
        )
        return self._shown(call, request)

    def _update(self, call: Call) -> Any:
        project, request = self._project(call, at_least=DEVELOPER), self._request(call)
        if call.given.get("state_event") == "close" and request.state == "opened":
            self._acts.change(project, request, call.token.person, state="closed")
        if gone := call.given.get("remove_labels"):
            labels = [label for label in request.labels if label not in gone.split(",")]
            self._acts.change(project, request, call.token.person, labels=labels)
        return self._shown(call, request)

    def _merge(self, call: Call) -> Any:
        project, request = self._project(call), self._request(call)
        needed = project.protected.get(request.target_branch, DEVELOPER)
        if project.members.get(call.token.person.username, 0) < needed:
            raise Refusal(401, "401 Unauthorized")
        obstacle = first_obstacle(project, request)
        if obstacle in ("conflict", "need_rebase"):
            raise Refusal(422, "Branch cannot be merged")
        if obstacle != "mergeable":
            raise Refusal(405, "405 Method Not Allowed")
        if call.given.get("sha", request.head) != request.head:
            raise Refusal(409, f"SHA does not match HEAD of source branch: {request.head}")
        if request.merge_error is not None:
            raise Refusal(422, "Branch cannot be merged")
        self._acts.merge(project, request, call.token.person, *_words(project, call.given))
        return self._shown(call, request)

    # Words

    def _notes(self, call: Call) -> Any:
        request = self._request(call)
        notes = request.notes if call.given.get("sort") == "asc" else request.notes[::-1]
        return [self._show(call).note(request, note) for note in notes]

    def _say(self, call: Call) -> Any:
        project, request = self._project(call), self._request(call)
        note = self._acts.say(project, request, call.given["body"], by=call.token.person.username)
        return self._show(call).note(request, note)

    def _edit(self, call: Call) -> Any:
        request, note = self._request(call), self._note(call)
        if note.author != call.token.person:
            raise Refusal(403, "403 Forbidden")
        self._acts.rewrite(self._project(call), request, note, call.given["body"])
        return self._show(call).note(request, note)

    def _react(self, call: Call) -> Any:
        note = self._note(call)
        if not self._acts.react(note, call.token.person, call.given["name"]):
            raise Refusal(404, "404 Award Emoji Name has already been taken Not Found")
        return self._show(call).reaction(note, note.reactions[-1])

    # Finding what is meant

    def _show(self, call: Call) -> Showing:
        return Showing(self._world.pages, call.token.person)

    def _shown(self, call: Call, request: MergeRequest) -> Any:
        return self._show(call).merge_request(self._project(call), request)

    def _project(self, call: Call, *, at_least: int = 0) -> Project:
        project = self._world.project_named(call.parts["id"])
        level = 0 if project is None else project.members.get(call.token.person.username, 0)
        if project is None or level == 0:
            raise Refusal(404, NOT_FOUND.format("Project"))
        if level < at_least:
            raise Refusal(403, "403 Forbidden")
        return project

    def _request(self, call: Call) -> MergeRequest:
        found = self._project(call).merge_requests.get(int(call.parts["iid"]))
        if found is None:
            raise Refusal(404, "404 Not found")
        return found

    def _note(self, call: Call) -> Note:
        notes: Sequence[Note] = self._request(call).notes
        found = next((note for note in notes if str(note.id) == call.parts["note"]), None)
        if found is None:
            raise Refusal(404, NOT_FOUND.format("Note"))
        return found


def _is_wanted(request: MergeRequest, given: dict[str, Any]) -> bool:
    state_fits = given.get("state", "all") in ("all", request.state)
    return state_fits and given.get("source_branch") in (None, request.source_branch)


def _words(project: Project, given: dict[str, Any]) -> tuple[str, str | None]:
    squash = given.get("squash", False) or project.squash_option == "always"
    return given.get("merge_commit_message", "Merge"), given.get("squash_commit_message", "Squash") if squash else None
