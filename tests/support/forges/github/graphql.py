"""GraphQL of the fake GitHub: a part of its schema, and errors as GitHub sends them."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from graphql import ExecutionResult, GraphQLError, GraphQLResolveInfo, build_schema, parse, validate
from msgspec import Struct

from mergeyard.domain.ids import Sha
from tests.support.forges.github.actions import FakeRepository
from tests.support.forges.github.payloads import format_time
from tests.support.forges.github.rules import OPINIONS, WRITERS, review_decision
from tests.support.forges.github.world import Caller, Comment, PullRequest, Review, ReviewRequest, ReviewThread

SCHEMA = """
scalar BigInt
scalar DateTime
scalar GitObjectID

type Query {
  repository(owner: String!, name: String!, followRenames: Boolean): Repository
  rateLimit(dryRun: Boolean): RateLimit
}

type RateLimit {
  limit: Int!
  cost: Int!
  remaining: Int!
  used: Int!
  resetAt: DateTime!
}

type Repository {
  nameWithOwner: String!
  object(expression: String, oid: GitObjectID): GitObject
  pullRequest(number: Int!): PullRequest
  pullRequests(first: Int, after: String, states: [PullRequestState!], headRefName: String): PullRequestConnection!
}

interface GitObject {
  oid: GitObjectID!
}

enum PullRequestState { CLOSED MERGED OPEN }

type PullRequestConnection {
  nodes: [PullRequest]
  pageInfo: PageInfo!
  totalCount: Int!
}

type PullRequest {
  number: Int!
  state: PullRequestState!
  headRefName: String!
  headRefOid: GitObjectID!
  isDraft: Boolean!
  comments(first: Int, last: Int, after: String): IssueCommentConnection!
  reviewDecision: PullRequestReviewDecision
  reviewThreads(first: Int, after: String): PullRequestReviewThreadConnection!
  latestOpinionatedReviews(first: Int, after: String, writersOnly: Boolean): PullRequestReviewConnection
  reviewRequests(first: Int, after: String): ReviewRequestConnection
}

enum PullRequestReviewDecision { APPROVED CHANGES_REQUESTED REVIEW_REQUIRED }
enum PullRequestReviewState { APPROVED CHANGES_REQUESTED COMMENTED DISMISSED PENDING }

type PageInfo {
  hasNextPage: Boolean!
  endCursor: String
}

type IssueCommentConnection {
  nodes: [IssueComment]
  pageInfo: PageInfo!
  totalCount: Int!
}

type IssueComment {
  fullDatabaseId: BigInt
  lastEditedAt: DateTime
}

type PullRequestReviewThreadConnection {
  nodes: [PullRequestReviewThread]
  pageInfo: PageInfo!
  totalCount: Int!
}

type PullRequestReviewThread {
  isResolved: Boolean!
  isOutdated: Boolean!
}

type PullRequestReviewConnection {
  nodes: [PullRequestReview]
  pageInfo: PageInfo!
  totalCount: Int!
}

type PullRequestReview {
  state: PullRequestReviewState!
  author: Actor
  commit: Commit
  submittedAt: DateTime
  onBehalfOf(first: Int, after: String): TeamConnection!
}

type Commit implements GitObject {
  oid: GitObjectID!
  associatedPullRequests(first: Int, after: String): PullRequestConnection
}

type TeamConnection {
  nodes: [Team]
  pageInfo: PageInfo!
  totalCount: Int!
}

type ReviewRequestConnection {
  nodes: [ReviewRequest]
  pageInfo: PageInfo!
  totalCount: Int!
}

type ReviewRequest {
  asCodeOwner: Boolean!
  requestedReviewer: RequestedReviewer
}

union RequestedReviewer = Bot | Mannequin | Team | User

interface Actor {
  login: String!
}

type User implements Actor {
  login: String!
}

type Bot implements Actor {
  login: String!
}

type Mannequin implements Actor {
  login: String!
}

type Team {
  combinedSlug: String!
  slug: String!
  databaseId: Int
}
"""
MAX_PAGE_SIZE = 100
Info = GraphQLResolveInfo[Any]
Node = dict[str, Any]
RATE_LIMIT = {"limit": 5000, "cost": 1, "remaining": 4999, "used": 1, "resetAt": "2026-01-01T00:00:00Z"}


class Refused(Exception):
    """An error with GitHub's word for its kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class QueryResult(Struct, frozen=True):
    content: dict[str, Any]
    mismatches: list[str]
    """Why the schema does not allow the query."""


class Viewing(Struct, frozen=True):
    """Who sends a query, and what there is to see."""

    caller: Caller
    repositories: Mapping[str, FakeRepository]

    def require(self, permission: str) -> None:
        if not self.caller.has_permission(permission, "read"):
            raise Refused("FORBIDDEN", "Resource not accessible by integration")


schema = build_schema(SCHEMA)
execute_sync: Any = import_module("graphql").execute_sync
"""Imported by name, because its type is not complete."""


def run_query(body: Mapping[str, Any], caller: Caller, repositories: Mapping[str, FakeRepository]) -> QueryResult:
    try:
        document = parse(body["query"])
    except GraphQLError as error:
        return QueryResult({"errors": [_encode_error(error)]}, [error.message])
    errors = validate(schema, document)
    if errors:
        return QueryResult({"errors": [_encode_error(error) for error in errors]}, [error.message for error in errors])
    result: ExecutionResult = execute_sync(
        schema,
        document,
        root_value={"repository": find_repository, "rateLimit": RATE_LIMIT},
        context_value=Viewing(caller, repositories),
        variable_values=body.get("variables") or {},
    )
    found = result.errors or []
    invalid = [error.message for error in found if error.original_error is None]
    errors_shown = {"errors": [_encode_error(error) for error in found]} if found else {}
    return QueryResult({"data": result.data} | errors_shown, invalid)


def _encode_error(error: GraphQLError) -> Node:
    content: dict[str, Any] = {"message": error.message}
    content |= {"locations": [{"line": at.line, "column": at.column} for at in error.locations or []]}
    if error.path:
        content["path"] = list(error.path)
    return content | ({"type": error.original_error.kind} if isinstance(error.original_error, Refused) else {})


def find_repository(info: Info, owner: str, name: str, **_: Any) -> Node:
    viewing: Viewing = info.context
    full_name = f"{owner}/{name}"
    repository = viewing.repositories.get(full_name.lower())
    if repository is None or not viewing.caller.can_see(repository.name.lower()):
        raise Refused("NOT_FOUND", f"Could not resolve to a Repository with the name '{full_name}'.")

    def find_pull_request(_: Info, number: int) -> Node:
        viewing.require("pull_requests")
        if number not in repository.pull_requests:
            raise Refused("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.")
        return describe_pull_request(viewing, repository, repository.pull_requests[number])

    def list_pull_requests(_: Info, **given: Any) -> Node:
        viewing.require("pull_requests")
        found, branch = [*repository.pull_requests.values()], given.get("headRefName")
        found = [one for one in found if branch is None or one.branch == branch]
        found = [one for one in found if "states" not in given or describe_state(one) in given["states"]]
        return paginate(found, lambda one: describe_pull_request(viewing, repository, one), **given)

    def find_object(_: Info, *, oid: str = "", expression: str = "") -> Node | None:
        viewing.require("contents")
        sha = repository.origin.ref(expression) if expression else Sha(oid)
        return describe_commit(viewing, repository, sha) if sha and repository.has_commit(sha) else None

    found = {"pullRequest": find_pull_request, "pullRequests": list_pull_requests, "object": find_object}
    return found | {"nameWithOwner": repository.name}


def describe_commit(viewing: Viewing, repository: FakeRepository, sha: Sha) -> Node:
    def list_associated(_: Info, **page: Any) -> Node:
        viewing.require("pull_requests")
        found = repository.list_associated(sha)
        return paginate(found, lambda one: describe_pull_request(viewing, repository, one), **page)

    return {"__typename": "Commit", "oid": sha, "associatedPullRequests": list_associated}


def describe_state(change: PullRequest) -> str:
    return "MERGED" if change.merged else "OPEN" if change.open else "CLOSED"


def describe_pull_request(viewing: Viewing, repository: FakeRepository, change: PullRequest) -> Node:
    def list_reviews(_: Info, *, writersOnly: bool = False, **page: Any) -> Node:  # noqa: N803
        latest = {review.user: review for review in change.reviews if review.state in OPINIONS}
        found = [one for one in latest.values() if not writersOnly or repository.roles.get(one.user) in WRITERS]
        return paginate(found, lambda review: describe_review(viewing, repository, review), **page)

    def list_threads(_: Info, **page: Any) -> Node:
        return paginate(change.threads, describe_thread, **page)

    def list_comments(_: Info, **page: Any) -> Node:
        found = [comment for comment in repository.comments.values() if comment.number == change.number]
        return paginate(found, describe_comment, **page)

    def list_requests(_: Info, **page: Any) -> Node:
        return paginate(change.review_requests, lambda one: describe_request(viewing, repository, one), **page)

    return {
        "number": change.number,
        "state": describe_state(change),
        "headRefName": change.branch,
        "headRefOid": change.head,
        "isDraft": change.draft,
        "comments": list_comments,
        "reviewDecision": review_decision(repository, change),
        "reviewThreads": list_threads,
        "latestOpinionatedReviews": list_reviews,
        "reviewRequests": list_requests,
    }


def describe_comment(comment: Comment) -> Node:
    """The id is larger than an `Int`, so GitHub sends it as text."""
    edited_at = comment.last_edited_at
    shown_at = None if edited_at is None else format_time(edited_at)
    return {"fullDatabaseId": str(comment.id), "lastEditedAt": shown_at}


def describe_thread(thread: ReviewThread) -> Node:
    return {"isResolved": thread.is_resolved, "isOutdated": thread.is_outdated}


def describe_review(viewing: Viewing, repository: FakeRepository, review: Review) -> Node:
    def list_teams(_: Info, **page: Any) -> Node:
        return paginate(review.on_behalf_of, lambda name: describe_team(viewing, repository, name), **page)

    return {
        "state": review.state,
        "author": describe_account(review.user) if review.user else None,
        "commit": {"oid": review.commit},
        "submittedAt": format_time(review.at),
        "onBehalfOf": list_teams,
    }


def describe_request(viewing: Viewing, repository: FakeRepository, request: ReviewRequest) -> Node:
    def find_reviewer(_: Info) -> Node:
        name = request.reviewer
        return describe_team(viewing, repository, name) if request.is_team else describe_account(name)

    return {"asCodeOwner": request.as_code_owner, "requestedReviewer": find_reviewer}


def describe_account(login: str) -> Node:
    return {"__typename": "Bot" if login.endswith("[bot]") else "User", "login": login.removesuffix("[bot]")}


def describe_team(viewing: Viewing, repository: FakeRepository, name: str) -> Node:
    """Teams belong to the organization: a permission of the repository does not show them."""
    viewing.require("members")
    if not viewing.caller.can_resolve_teams:
        raise Refused("NOT_FOUND", "Could not resolve to a node")
    slug = name.rpartition("/")[2]
    return {
        "__typename": "Team",
        "combinedSlug": name,
        "slug": slug,
        "databaseId": repository.organization.teams[slug].id,
    }


def paginate(items: Sequence[Any], describe: Callable[[Any], Any], **page: Any) -> Node:
    """Nodes that cannot be described are null, and each is an error."""
    if page.get("last") is not None:
        page = {"first": page["last"]}
        items = items[-page["first"] :]
    first = page.get("first")
    if first is None:
        raise Refused("MISSING_PAGINATION_BOUNDARIES", "You must provide a `first` or `last` value.")
    if not 1 <= first <= MAX_PAGE_SIZE:
        raise Refused("EXCESSIVE_PAGINATION", f"Requesting {first} records exceeds the `first` limit of 100 records.")
    start = int(b64decode(page["after"]).decode()) if page.get("after") else 0
    end = min(start + first, len(items))
    cursor = b64encode(str(end).encode()).decode() if end > start else None
    return {
        "nodes": [_describe_or_refuse(describe, one) for one in items[start:end]],
        "pageInfo": {"hasNextPage": end < len(items), "endCursor": cursor},
        "totalCount": len(items),
    }


def _describe_or_refuse(describe: Callable[[Any], Any], item: Any) -> Any:
    """The library reports an exception in a list as the error of this item."""
    try:
        return describe(item)
    except Refused as error:
        return error
