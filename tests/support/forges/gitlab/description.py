"""Checks the requests to the fake and its responses with GitLab's published API description.

`description.json` has the facts of that description; `tools/gitlab_description.py` makes it. An unknown path, an
unknown parameter or value of one, an unknown member and a member of another type raise. Where the description is
incomplete or wrong, `UNDESCRIBED` and `MISTYPED` say so. In addition, a response of the fake must have all members of
its type in `schema`.
"""

import json
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from tests.support.forges.gitlab import schema

FACTS: dict[str, Any] = json.loads(Path(__file__).with_name("description.json").read_text())
ENTITIES: dict[str, Any] = FACTS["entities"]
MERGE_REQUEST_PATH = "/projects/:id/merge_requests/:iid"
PAGE_PARAMS = ("page", "per_page")
UNDESCRIBED: dict[str, tuple[str, ...]] = {
    # Pages of these lists are not described. Where GitLab does not cut pages, it ignores the parameters.
    f"GET {MERGE_REQUEST_PATH}/pipelines": PAGE_PARAMS,
    f"GET {MERGE_REQUEST_PATH}/reviewers": PAGE_PARAMS,
    f"GET {MERGE_REQUEST_PATH}/status_checks": PAGE_PARAMS,
    # The description has the entity of the free edition. Premium adds these members.
    "APIEntitiesMergeRequestApprovals": ("approvals_required", "approvals_left"),
    # GitLab puts the members of `signature` next to it.
    "APIEntitiesCommitSignature": ("verification_status",),
    # The description has what a proxy in front of GitLab sends on, not what clients send.
    "POST /projects/:id/repository/files/:file_path": ("branch", "commit_message", "content"),
}
"""Parameters of routes and members of entities that GitLab has and its description does not have."""
MISTYPED = {"APIEntitiesMember": ("access_level",), "APIEntitiesProjectWithAccess": ("merge_pipelines_enabled",)}
"""Members that GitLab describes as texts, which is the default of its generator, and sends as numbers or booleans."""
RESPONSES: dict[str, Any] = {
    "GET /user": schema.Account,
    "GET /user/keys": list[schema.SshKey],
    "GET /user/gpg_keys": list[schema.GpgKey],
    "GET /personal_access_tokens/self": schema.Token,
    "GET /projects/:id": schema.Project,
    "GET /projects/:id/members/all": list[schema.Member],
    "GET /projects/:id/members/all/:user": schema.Member,
    "GET /projects/:id/push_rule": schema.PushRule | None,
    "GET /groups/:group/members/all": list[schema.Member],
    "GET /projects/:id/hooks": list[schema.Hook],
    "GET /projects/:id/protected_branches": list[schema.ProtectedBranch],
    "GET /projects/:id/repository/branches/:branch": schema.Branch,
    "GET /projects/:id/repository/commits/:sha": schema.CommitDetail,
    "GET /projects/:id/repository/commits/:sha/signature": schema.CommitSignature,
    "GET /projects/:id/repository/commits/:sha/statuses": list[schema.CommitStatus],
    "POST /projects/:id/statuses/:sha": schema.CommitStatus,
    "GET /projects/:id/pipelines": list[schema.Pipeline],
    "GET /projects/:id/pipelines/:pipeline/jobs": list[schema.Job],
    "GET /projects/:id/pipelines/:pipeline/bridges": list[schema.Job],
    "GET /projects/:id/merge_requests": list[schema.ListedMergeRequest],
    "POST /projects/:id/merge_requests": schema.MergeRequest,
    f"GET {MERGE_REQUEST_PATH}": schema.MergeRequest,
    f"PUT {MERGE_REQUEST_PATH}": schema.MergeRequest,
    f"PUT {MERGE_REQUEST_PATH}/merge": schema.MergeRequest,
    f"GET {MERGE_REQUEST_PATH}/commits": list[schema.CommitDetail],
    f"GET {MERGE_REQUEST_PATH}/pipelines": list[schema.Pipeline],
    f"GET {MERGE_REQUEST_PATH}/approvals": schema.Approvals,
    f"GET {MERGE_REQUEST_PATH}/approval_state": schema.ApprovalState,
    f"GET {MERGE_REQUEST_PATH}/discussions": list[schema.Discussion],
    f"GET {MERGE_REQUEST_PATH}/reviewers": list[schema.Reviewer],
    f"GET {MERGE_REQUEST_PATH}/status_checks": list[schema.ExternalCheck],
    f"GET {MERGE_REQUEST_PATH}/notes": list[schema.Note],
    f"POST {MERGE_REQUEST_PATH}/notes": schema.Note,
    f"PUT {MERGE_REQUEST_PATH}/notes/:note": schema.Note,
    f"POST {MERGE_REQUEST_PATH}/notes/:note/award_emoji": schema.AwardEmoji,
}
"""What the fake always sends. Its members, and the values of some, are narrower than the description."""


class DescriptionMismatch(Exception):
    """A request or response that GitLab does not describe."""


def check_request(route: str, query: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    known: dict[str, list[Any]] = find_operation(route)["params"]
    for place, given in (("query", query), ("body", body)):
        for name, value in given.items():
            if name in UNDESCRIBED.get(route, ()):
                continue
            described_place, kind = known.get(name, (None, None))
            if described_place != place:
                raise DescriptionMismatch(f"{route} has a parameter that GitLab does not know in the {place}: {name}")
            if not _is_allowed(value, kind):
                raise DescriptionMismatch(f"{route} does not take this value of {name}: {value!r}")


def check_response(route: str, content: Any) -> None:
    _check_value(f"the response of {route}", content, find_operation(route)["response"])
    try:
        msgspec.convert(content, RESPONSES.get(route, Any))
    except msgspec.ValidationError as error:
        raise DescriptionMismatch(f"{route} has a response that GitLab does not describe: {error}") from error


def find_operation(route: str) -> dict[str, Any]:
    """The names of path parameters do not matter."""
    found = OPERATIONS.get(_shape(route))
    if found is None:
        raise DescriptionMismatch(f"GitLab has no {route}, or description.json lacks it: add it to its tool")
    return found


def _shape(route: str) -> str:
    method, _, path = route.partition(" ")
    return f"{method} " + "/".join("*" if piece[:1] in (":", "{") else piece for piece in path.split("/"))


OPERATIONS: dict[str, Any] = {_shape(route): operation for route, operation in FACTS["operations"].items()}


def _is_allowed(value: Any, kind: Any) -> bool:
    """Values of a query are texts."""
    if isinstance(kind, list):
        return value in cast(list[Any], kind)
    if isinstance(value, str):
        return kind != "integer" or value.isdecimal()
    return kind not in TYPES or isinstance(value, TYPES[kind])


TYPES: dict[Any, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


def _check_value(place: str, value: Any, kind: Any) -> None:
    """The description does not say reliably what can be null or a list. Some responses are not described at all."""
    if kind is None:
        return
    match value:
        case None:
            return
        case list():
            for item in cast(list[Any], value):
                _check_value(place, item, kind)
        case dict():
            _check_members(place, cast(dict[str, Any], value), kind)
        case _ if not _fits(value, kind):
            raise DescriptionMismatch(f"{place} is {value!r}, which GitLab does not describe: {kind}")
        case _:
            return


def _check_members(place: str, value: dict[str, Any], kind: Any) -> None:
    name = kind if isinstance(kind, str) else ""
    if name in ("object", "any"):
        return
    members: Any = ENTITIES.get(name) if name else kind
    for member, content in value.items():
        if member in (*UNDESCRIBED.get(name, ()), *MISTYPED.get(name, ())):
            continue
        if not isinstance(members, dict) or member not in members:
            raise DescriptionMismatch(f"{place} has a member that GitLab does not describe: {member} ({name})")
        _check_value(f"{place}, {member}", content, cast(dict[str, Any], members)[member])


def _fits(value: Any, kind: Any) -> bool:
    if kind in ("date", "date-time"):
        try:
            return bool((date if kind == "date" else datetime).fromisoformat(value))
        except (TypeError, ValueError):
            return False
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return kind in ("any", "object") or (
        kind in TYPES and isinstance(value, TYPES[kind]) and (is_number or kind not in ("integer", "number"))
    )
