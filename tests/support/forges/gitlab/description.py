"""Checks the fake's requests and responses with GitLab's published API description."""

from typing import Any

import msgspec
from msgspec import Struct

from tests.support.forges.gitlab import schema


class DescriptionMismatch(Exception):
    """A request or response that GitLab does not describe."""


class Operation(Struct, frozen=True):
    response: Any
    params: frozenset[str] = frozenset()


def operation(answer: Any, *asks: str) -> Operation:
    return Operation(answer, frozenset(asks))


PAGE_PARAMS = ("page", "per_page")
MERGE_REQUEST_PATH = "/projects/:id/merge_requests/:iid"
OPERATIONS = {
    "GET /user": operation(schema.User),
    "GET /personal_access_tokens/self": operation(schema.Token),
    "GET /projects/:id": operation(schema.Project),
    "GET /projects/:id/members/all": operation(list[schema.Member], "query", *PAGE_PARAMS),
    "GET /groups/:group/members/all": operation(list[schema.Member], "query", *PAGE_PARAMS),
    "GET /projects/:id/hooks": operation(list[schema.Hook], *PAGE_PARAMS),
    "GET /projects/:id/protected_branches": operation(list[schema.ProtectedBranch], "search", *PAGE_PARAMS),
    "GET /projects/:id/repository/branches/:branch": operation(schema.Branch),
    "GET /projects/:id/repository/commits/:sha/statuses": operation(
        list[schema.CommitStatus], "ref", "name", "all", *PAGE_PARAMS
    ),
    "POST /projects/:id/statuses/:sha": operation(
        schema.CommitStatus, "state", "ref", "name", "context", "target_url", "description", "coverage", "pipeline_id"
    ),
    "GET /projects/:id/pipelines": operation(
        list[schema.Pipeline], "sha", "ref", "status", "order_by", "sort", *PAGE_PARAMS
    ),
    "GET /projects/:id/pipelines/:pipeline/jobs": operation(list[schema.Job], "scope", "include_retried", *PAGE_PARAMS),
    "GET /projects/:id/pipelines/:pipeline/bridges": operation(list[schema.Job], "scope", *PAGE_PARAMS),
    "GET /projects/:id/merge_requests": operation(
        list[schema.ListedMergeRequest],
        "state",
        "scope",
        "order_by",
        "sort",
        "source_branch",
        "target_branch",
        *PAGE_PARAMS,
    ),
    "POST /projects/:id/merge_requests": operation(
        schema.MergeRequest, "source_branch", "target_branch", "title", "description", "remove_source_branch", "labels"
    ),
    f"GET {MERGE_REQUEST_PATH}": operation(schema.MergeRequest),
    f"PUT {MERGE_REQUEST_PATH}": operation(schema.MergeRequest, "state_event", "remove_labels", "add_labels", "title"),
    f"PUT {MERGE_REQUEST_PATH}/merge": operation(
        schema.MergeRequest,
        "sha",
        "squash",
        "merge_commit_message",
        "squash_commit_message",
        "should_remove_source_branch",
    ),
    f"GET {MERGE_REQUEST_PATH}/approvals": operation(schema.Approvals),
    f"GET {MERGE_REQUEST_PATH}/notes": operation(list[schema.Note], "sort", "order_by", *PAGE_PARAMS),
    f"POST {MERGE_REQUEST_PATH}/notes": operation(schema.Note, "body", "created_at", "internal"),
    f"PUT {MERGE_REQUEST_PATH}/notes/:note": operation(schema.Note, "body"),
    f"POST {MERGE_REQUEST_PATH}/notes/:note/award_emoji": operation(schema.AwardEmoji, "name"),
}


def check_request(route: str, params: set[str]) -> None:
    if unknown := params - OPERATIONS[route].params:
        raise DescriptionMismatch(f"{route} has parameters that GitLab does not know: {', '.join(sorted(unknown))}")


def check_response(route: str, content: Any) -> None:
    try:
        msgspec.convert(content, OPERATIONS[route].response)
    except msgspec.ValidationError as error:
        raise DescriptionMismatch(f"{route} has a response that GitLab does not describe: {error}") from error
