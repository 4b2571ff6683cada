"""The fake GitLab, with the requests of administrators, compared with GitLab's description as all others."""

from collections.abc import Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from tests.live.fakes.administration import OWNER, SECOND, RequestLimiter
from tests.live.hosts import Access
from tests.support.forges.gitlab.api_routes import ApiError, Call
from tests.support.forges.gitlab.description import OPERATIONS
from tests.support.forges.gitlab.fake import FakeGitlab
from tests.support.forges.gitlab.payloads import Payloads
from tests.support.forges.gitlab.world import ApprovalRule, Hook, MergeRequest, Project, Token

OWNER_LEVEL = 50
ONLY_IN_GET = ("permissions", "merge_pipelines_enabled")
REQUEST = "/projects/:id/merge_requests/:iid"
REQUESTS_CHANGES = "\n/submit_review requested_changes"
KIT_OPERATIONS: dict[str, Any] = {
    "POST /projects/*/merge_requests/*/unapprove": {"params": {}, "response": None},
    "POST /projects/*/merge_requests/*/discussions": {"params": {"body": ["body", "string"]}, "response": None},
    "PUT /projects/*/merge_requests/*/discussions/*": {"params": {"resolved": ["body", "boolean"]}, "response": None},
    "GET /projects/*/merge_requests/*/diffs": {"params": {}, "response": None},
}
"""What GitLab describes, and our copy of its description leaves out."""
OPERATIONS.update(KIT_OPERATIONS)


class GitlabAdministration:
    """Adds the requests of administrators to a fake GitLab, which compares them with GitLab's description."""

    def __init__(self, gitlab: FakeGitlab) -> None:
        self._gitlab, self._world = gitlab, gitlab.world
        self._update, self._open = gitlab.routes[f"PUT {REQUEST}"], gitlab.routes["POST /projects/:id/merge_requests"]
        self._add_note = gitlab.routes[f"POST {REQUEST}/notes"]
        self._hook_ids = count(1)
        gitlab.routes |= {
            "GET /namespaces": lambda _: [{"id": 1, "full_path": OWNER, "path": OWNER, "kind": "user", "name": OWNER}],
            "POST /projects": self._create,
            "PUT /projects/:id": self._edit,
            "DELETE /projects/:id": self._delete,
            "POST /projects/:id/fork": self._fork,
            "POST /projects/:id/members": self._admit,
            "POST /projects/:id/protected_branches": self._protect,
            "DELETE /projects/:id/protected_branches/:name": self._unprotect,
            "POST /projects/:id/approval_rules": self._require_approvals,
            "POST /projects/:id/merge_requests": self._open_from_fork,
            f"PUT {REQUEST}": self._label,
            f"POST {REQUEST}/approve": self._approve,
            f"POST {REQUEST}/unapprove": self._unapprove,
            f"POST {REQUEST}/notes": self._comment,
            f"POST {REQUEST}/discussions": self._start_conversation,
            f"PUT {REQUEST}/discussions/:discussion": self._resolve_conversation,
            f"GET {REQUEST}/diffs": self._list_diffs,
            "POST /projects/:id/hooks": self._add_hook,
            f"GET {REQUEST}/notes/:note/award_emoji": self._list_reactions,
        }

    def _project(self, call: Call) -> Project:
        found = self._world.find_project(call.path_params["id"])
        if found is None:
            raise ApiError(404, "404 Project Not Found")
        return found

    def _show(self, call: Call, project: Project) -> Any:
        """Only a GET shows all members."""
        shown = self._gitlab.routes["GET /projects/:id"](replace(call, path_params={"id": str(project.id)}))
        return {name: value for name, value in shown.items() if name not in ONLY_IN_GET}

    def _create(self, call: Call) -> Any:
        project = self._world.add_project(self._gitlab.git_server, f"{OWNER}/{call.params['name']}")
        project.members = {call.token.user.username: OWNER_LEVEL}
        return self._show(call, project)

    def _edit(self, call: Call) -> Any:
        project = self._project(call)
        if "path" in call.params:
            self._world.rename(project, f"{OWNER}/{call.params['path']}")
        project.pipelines_must_succeed = call.params.get(
            "only_allow_merge_if_pipeline_succeeds", project.pipelines_must_succeed
        )
        project.discussions_must_be_resolved = call.params.get(
            "only_allow_merge_if_all_discussions_are_resolved", project.discussions_must_be_resolved
        )
        return self._show(call, project)

    def _delete(self, call: Call) -> None:
        del self._world.projects[self._project(call).path]

    def _fork(self, call: Call) -> Any:
        source, name = self._project(call), call.token.user.username
        fork = self._world.add_project(self._gitlab.git_server, f"{name}/{source.path.rpartition('/')[2]}")
        fork.members = {name: OWNER_LEVEL}
        fork.origin.run("fetch", "--quiet", source.origin.url, "+refs/heads/*:refs/heads/*")
        return self._show(call, fork)

    def _admit(self, call: Call) -> Any:
        person = next(one for one in self._world.users.values() if one.id == call.params["user_id"])
        self._project(call).members[person.username] = call.params["access_level"]
        members = {"id": call.path_params["id"], "user": str(person.id)}
        return self._gitlab.routes["GET /projects/:id/members/all/:user"](replace(call, path_params=members))

    def _protect(self, call: Call) -> Any:
        project, name = self._project(call), call.params["name"]
        project.protected[name] = call.params["push_access_level"]
        project.merge_access[name] = [{"access_level": call.params["merge_access_level"]}]
        if call.params.get("code_owner_approval_required"):
            # In the fake, a rule is for all merge requests: this one is gone when the next step protects the branch.
            pattern, owner = str(project.origin.files("main")["CODEOWNERS"]).split()
            rule = ApprovalRule(name=pattern, rule_type="code_owner", users=(owner.removeprefix("@"),))
            self._gitlab.actions.require_approvals(project, *project.approval_rules, rule)
        shown = self._gitlab.routes["GET /projects/:id/protected_branches"](call)
        return next(one for one in shown if one["name"] == name)

    def _unprotect(self, call: Call) -> None:
        self._project(call).protected.pop(call.path_params["name"], None)

    def _require_approvals(self, call: Call) -> Any:
        project, count = self._project(call), call.params["approvals_required"]
        rule = ApprovalRule(name=call.params["name"], needed=count, rule_type=call.params["rule_type"])
        self._gitlab.actions.require_approvals(project, rule)
        return {"id": 1, "name": rule.name, "rule_type": rule.rule_type, "approvals_required": count}

    def _open_from_fork(self, call: Call) -> Any:
        if "target_project_id" not in call.params:
            return self._open(call)
        source, number = self._project(call), str(call.params["target_project_id"])
        target = self._world.find_project(number)
        assert target is not None
        request = self._gitlab.actions.open_merge_request(
            target,
            call.params["source_branch"],
            by=call.token.user.username,
            title=call.params["title"],
            source=source,
        )
        where = {"id": number, "iid": str(request.iid)}
        return self._gitlab.routes[f"GET {REQUEST}"](replace(call, path_params=where))

    def _label(self, call: Call) -> Any:
        if "add_labels" in call.params:
            project = self._project(call)
            request = project.merge_requests[int(call.path_params["iid"])]
            labels = [*request.labels, call.params["add_labels"]]
            self._gitlab.actions.update(project, request, call.token.user, labels=labels)
        return self._update(call)

    def _request(self, call: Call) -> MergeRequest:
        return self._project(call).merge_requests[int(call.path_params["iid"])]

    def _approve(self, call: Call) -> Any:
        """Ends the account's own request for changes."""
        request, name = self._request(call), call.token.user.username
        request.changes_requested_by = [one for one in request.changes_requested_by if one != name]
        self._gitlab.actions.approve(self._project(call), request, name)
        return self._gitlab.routes[f"GET {REQUEST}/approvals"](call)

    def _unapprove(self, call: Call) -> Any:
        self._gitlab.actions.unapprove(self._project(call), self._request(call), call.token.user.username)
        return self._gitlab.routes[f"GET {REQUEST}/approvals"](call)

    def _comment(self, call: Call) -> Any:
        """Executes one more command than the fake: it also removes the approval of the account. GitLab does not store
        the line with the command."""
        text: str = call.params["body"]
        if REQUESTS_CHANGES in text:
            request, name = self._request(call), call.token.user.username
            request.approvals = [one for one in request.approvals if one != name]
            self._gitlab.actions.request_changes(self._project(call), request, name)
        return self._add_note(replace(call, params=call.params | {"body": text.replace(REQUESTS_CHANGES, "").strip()}))

    def _start_conversation(self, call: Call) -> Any:
        self._set_unresolved(call, 1)
        return {"id": "1", "individual_note": False, "notes": [{"resolvable": True, "resolved": False}]}

    def _resolve_conversation(self, call: Call) -> Any:
        self._set_unresolved(call, 0)
        return {"id": "1", "individual_note": False, "notes": [{"resolvable": True, "resolved": True}]}

    def _set_unresolved(self, call: Call, unresolved: int) -> None:
        self._request(call).unresolved = unresolved
        self._world.touch(self._request(call))

    def _list_diffs(self, call: Call) -> Any:
        """Of the head that GitLab recorded last, compared with the target branch as it was then."""
        request, origin = self._request(call), self._project(call).origin
        if request.has_empty_diff:
            return []
        base = f"{request.merge_commit}^" if request.merge_commit else request.target_branch
        names = origin.run("diff", "--name-only", f"{base}...{request.head}").decode().split()
        return [{"old_path": name, "new_path": name} for name in names]

    def _add_hook(self, call: Call) -> Any:
        project, given = self._project(call), call.params
        events = frozenset(name.removesuffix("_events") for name, value in given.items() if value is True)
        hook = Hook(id=next(self._hook_ids), url=given["url"], secret=given["token"], events=events)
        project.hooks.append(hook)
        return Payloads(self._world.web_url, call.token.user).hook(project, hook)

    def _list_reactions(self, call: Call) -> Any:
        request = self._project(call).merge_requests[int(call.path_params["iid"])]
        note = next(one for one in request.notes if str(one.id) == call.path_params["note"])
        payloads = Payloads(self._world.web_url, call.token.user)
        return [payloads.reaction(note, one) for one in note.reactions]


@contextmanager
def fake_gitlab(root: Path, like: Access | None = None) -> Generator[Access]:
    """Like the real one: with a second account, or without; of the same plan."""
    with FakeGitlab(root) as gitlab:
        GitlabAdministration(gitlab)
        tokens = {name: f"glpat-{uuid4().hex}" for name in (OWNER, SECOND)}
        gitlab.world.tokens |= {token: Token(gitlab.world.user(name)) for name, token in tokens.items()}
        url = gitlab.world.web_url
        yield Access(
            web_url=url,
            api_url=f"{url}/api/v4",
            owner=OWNER,
            token=tokens[OWNER],
            second_token=tokens[SECOND] if like is None or like.second_token else "",
            is_premium=like is not None and like.is_premium,
            limiter=RequestLimiter(gitlab.faults, 429),
        )
