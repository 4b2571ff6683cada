"""What GitLab's published description lets one ask for, and what comes back: the fake is held to both."""

from typing import Any

import msgspec
from msgspec import Struct

from tests.support.forges.gitlab import facts


class Drift(Exception):
    """The fake says, or is asked for, something that GitLab does not know."""


class Described(Struct, frozen=True):
    answer: Any
    asks: frozenset[str] = frozenset()


def of(answer: Any, *asks: str) -> Described:
    return Described(answer, frozenset(asks))


PAGES = ("page", "per_page")
REQUEST = "/projects/:id/merge_requests/:iid"
DESCRIPTION = {
    "GET /user": of(facts.User),
    "GET /personal_access_tokens/self": of(facts.Token),
    "GET /projects/:id": of(facts.Project),
    "GET /projects/:id/members/all": of(list[facts.Member], "query", *PAGES),
    "GET /groups/:group/members/all": of(list[facts.Member], "query", *PAGES),
    "GET /projects/:id/hooks": of(list[facts.Hook], *PAGES),
    "GET /projects/:id/protected_branches": of(list[facts.ProtectedBranch], "search", *PAGES),
    "GET /projects/:id/repository/branches/:branch": of(facts.Branch),
    "GET /projects/:id/repository/commits/:sha/statuses": of(list[facts.CommitStatus], "ref", "name", "all", *PAGES),
    "POST /projects/:id/statuses/:sha": of(
        facts.CommitStatus, "state", "ref", "name", "context", "target_url", "description", "coverage", "pipeline_id"
    ),
    "GET /projects/:id/pipelines": of(list[facts.Pipeline], "sha", "ref", "status", "order_by", "sort", *PAGES),
    "GET /projects/:id/pipelines/:pipeline/jobs": of(list[facts.Job], "scope", "include_retried", *PAGES),
    "GET /projects/:id/pipelines/:pipeline/bridges": of(list[facts.Job], "scope", *PAGES),
    "GET /projects/:id/merge_requests": of(
        list[facts.ListedMergeRequest], "state", "scope", "order_by", "sort", "source_branch", "target_branch", *PAGES
    ),
    "POST /projects/:id/merge_requests": of(
        facts.MergeRequest, "source_branch", "target_branch", "title", "description", "remove_source_branch", "labels"
    ),
    f"GET {REQUEST}": of(facts.MergeRequest),
    f"PUT {REQUEST}": of(facts.MergeRequest, "state_event", "remove_labels", "add_labels", "title"),
    f"PUT {REQUEST}/merge": of(
        facts.MergeRequest,
        "sha",
        "squash",
        "merge_commit_message",
        "squash_commit_message",
        "should_remove_source_branch",
    ),
    f"GET {REQUEST}/approvals": of(facts.Approvals),
    f"GET {REQUEST}/notes": of(list[facts.Note], "sort", "order_by", *PAGES),
    f"POST {REQUEST}/notes": of(facts.Note, "body", "created_at", "internal"),
    f"PUT {REQUEST}/notes/:note": of(facts.Note, "body"),
    f"POST {REQUEST}/notes/:note/award_emoji": of(facts.AwardEmoji, "name"),
}


def check_question(route: str, given: set[str]) -> None:
    if unknown := given - DESCRIPTION[route].asks:
        raise Drift(f"{route} is asked for what GitLab does not know: {', '.join(sorted(unknown))}")


def check_answer(route: str, answer: Any) -> None:
    try:
        msgspec.convert(answer, DESCRIPTION[route].answer)
    except msgspec.ValidationError as error:
        raise Drift(f"{route} answers what GitLab does not: {error}") from error
