"""The fake GitLab matches GitLab's published API description and its documented behavior.

The docstrings name the file or the document of GitLab that a test follows.
"""

import json
import subprocess
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

import httpx2
import pytest

from mergeyard.domain.timestamps import HOUR, MINUTE, SECOND
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.forges.gitlab import description as description_module
from tests.support.forges.gitlab.api_routes import ApiRoutes
from tests.support.forges.gitlab.description import (
    ENTITIES,
    FACTS,
    MISTYPED,
    RESPONSES,
    UNDESCRIBED,
    DescriptionMismatch,
    check_request,
    check_response,
    find_operation,
)
from tests.support.forges.gitlab.payloads import Payloads
from tests.support.forges.gitlab.rules import detailed_merge_status
from tests.support.forges.gitlab.world import BOT, DELETED, DEVELOPER, TOKEN, ApprovalRule, Hook, Token, User
from tests.support.repositories import ENVIRONMENT, Origin
from tools.gitlab_description import OPERATIONS as OPERATIONS_OF_THE_TOOL
from tools.gitlab_description import Description, encode_facts

pytestmark = pytest.mark.long

NEW_NOTE = "POST /projects/:id/merge_requests/:iid/notes"
ONE = "GET /projects/:id/merge_requests/:iid"


def read_merge_request(gitlab: GitlabEnvironment) -> dict[str, Any]:
    gitlab.open(1)
    return Payloads("http://gitlab.test", gitlab.world.user(BOT)).merge_request(gitlab.project, gitlab.request())


def test_the_responses_of_the_fake_match_the_api_description(gitlab: GitlabEnvironment):
    check_response(ONE, read_merge_request(gitlab))


@pytest.mark.parametrize(
    "drift",
    [
        {"iid": "1"},
        {"detailed_merge_status": "fine"},
        {"created_at": "yesterday"},
        {"is_mergeable": True},
        {"user": {}},
    ],
)
def test_a_response_that_differs_from_the_description_is_caught(gitlab: GitlabEnvironment, drift: dict[str, Any]):
    with pytest.raises(DescriptionMismatch):
        check_response(ONE, read_merge_request(gitlab) | drift)


@pytest.mark.parametrize(
    ("route", "answer"),
    [
        ("GET /version", {"version": 19}),
        ("GET /version", {"release": "19.4"}),
        ("POST /projects", {"id": True}),
        ("POST /projects", {"created_at": "yesterday"}),
        ("POST /projects", {"namespace": {"id": "seven"}}),
        ("GET /projects/:id/repository/tags", []),
    ],
)
def test_a_response_that_only_a_test_serves_is_compared_too(route: str, answer: Any):
    check_response("POST /projects", {"id": 7, "created_at": "2026-11-18T12:00:00Z", "namespace": {"id": 7}})
    with pytest.raises(DescriptionMismatch):
        check_response(route, answer)


def test_a_member_that_is_missing_is_caught(gitlab: GitlabEnvironment):
    answer = read_merge_request(gitlab)
    del answer["draft"]
    with pytest.raises(DescriptionMismatch, match="draft"):
        check_response(ONE, answer)


def test_a_request_that_gitlab_would_not_accept_is_caught():
    route = "GET /projects/:id/merge_requests"
    check_request(route, {"state": "opened", "page": "2"}, {})
    for query, body, refusal in (
        ({"sorted_by": "age"}, {}, "sorted_by"),
        ({"state": "fresh"}, {}, "fresh"),
        ({"page": "two"}, {}, "two"),
        ({}, {"state": "opened"}, "body"),
    ):
        with pytest.raises(DescriptionMismatch, match=refusal):
            check_request(route, query, body)
    with pytest.raises(DescriptionMismatch, match="yes"):
        check_request("PUT /projects/:id/merge_requests/:iid", {}, {"squash": ["yes"]})


def test_every_endpoint_of_the_fake_is_described(gitlab: GitlabEnvironment):
    for route in ApiRoutes(gitlab.world, gitlab.acts).handlers():
        assert route in RESPONSES or find_operation(route)["response"] is None


def test_a_request_that_gitlab_does_not_have_fails_the_test(gitlab: GitlabEnvironment):
    assert gitlab.call("GET", "/pull_requests").status_code == 500
    assert gitlab.call("GET", "/merge_requests", sorted_by="age").status_code == 500
    assert len(gitlab.gitlab.mismatches) == 2
    with pytest.raises(AssertionError, match="pull_requests"):
        gitlab.gitlab.close()
    gitlab.gitlab.mismatches.clear()


DESCRIBED: dict[str, Any] = {
    "paths": {
        "/api/v4/projects/{id}/things": {
            "post": {
                "parameters": [{"name": "id", "in": "path", "schema": {"type": "integer"}}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}},
                "responses": {
                    "400": {"description": "Bad"},
                    "201": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Body": {"properties": {"sort": {"type": "string", "enum": ["asc", "desc"]}, "size": {"type": "integer"}}},
            "Thing": {
                "properties": {
                    "at": {"type": "string", "format": "date-time", "description": "Words"},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
                    "owner": {"properties": {"id": {"type": "integer", "example": 7}}},
                    "other": {"oneOf": []},
                }
            },
        }
    },
}


def test_only_names_places_and_types_are_taken_from_the_description():
    description = Description(DESCRIBED)
    assert description.read_operation("POST /projects/{id}/things") == {
        "params": {"id": ["path", "integer"], "sort": ["body", ["asc", "desc"]], "size": ["body", "integer"]},
        "response": "Thing",
    }
    assert description.entities == {
        "Thing": {"at": "date-time", "parts": "Thing", "owner": {"id": "integer"}, "other": "any"}
    }


def test_the_stored_facts_are_complete_and_as_the_tool_writes_them():
    text = Path(description_module.__file__).with_name("description.json").read_text()
    assert encode_facts(json.loads(text)) == text
    assert tuple(FACTS["operations"]) == OPERATIONS_OF_THE_TOOL


def test_the_undescribed_names_are_still_undescribed():
    """A name that a newer description has must leave the list of exceptions."""
    for place, names in UNDESCRIBED.items():
        described = find_operation(place)["params"] if " " in place else ENTITIES[place]
        assert not set(names) & set(described), place
    for entity, names in MISTYPED.items():
        assert {ENTITIES[entity][name] for name in names} == {"string"}, entity


def test_a_response_that_differs_is_an_error_for_the_client(gitlab: GitlabEnvironment):
    gitlab.project.merge_method = "octopus"
    answer = gitlab.call("GET")
    assert answer.status_code == 500
    assert "merge_method" in answer.text
    gitlab.gitlab.mismatches.clear()


def test_the_fake_reports_the_first_obstacle_in_the_order_of_gitlab_with_the_pipeline_last(gitlab: GitlabEnvironment):
    """GitLab's `detailed_merge_status_service.rb` runs the check of the pipeline last. The order of the others is that
    of `mergeable_state_checks` and `mergeable_git_state_checks` in `merge_request.rb`, those of `ee/` first."""
    gitlab.open(1)
    project, request = gitlab.project, gitlab.request()
    gitlab.acts.require_approvals(project, ApprovalRule(name="Database", users=("bob",)))
    gitlab.acts.request_changes(project, request, "carol")
    project.pipelines_must_succeed = project.discussions_must_be_resolved = True
    project.merge_method, request.title = "ff", "Draft: A change"
    request.unresolved, request.external_checks = 1, {"license": "pending"}
    gitlab.acts.commit(project, "main", {"b.txt": "1"})
    seen = [detailed_merge_status(project, request)]
    for repair in (
        request.changes_requested_by.clear,
        lambda: gitlab.acts.approve(project, request, "bob"),
        request.external_checks.clear,
        lambda: setattr(request, "title", "A change"),
        lambda: setattr(request, "unresolved", 0),
        lambda: setattr(project, "merge_method", "merge"),
        lambda: setattr(project, "pipelines_must_succeed", False),
    ):
        repair()
        seen.append(detailed_merge_status(project, request))
    assert seen == [
        *("requested_changes", "not_approved", "status_checks_must_pass", "draft_status", "discussions_not_resolved"),
        *("need_rebase", "ci_must_pass", "mergeable"),
    ]


def test_approved_of_the_free_edition_is_false_until_any_account_approves(gitlab: GitlabEnvironment):
    """The entity of approvals in GitLab's free edition answers whether there is any approval."""
    gitlab.open(1)

    def ask(path: str) -> httpx2.Response:
        return gitlab.call("GET", f"/merge_requests/1/{path}")

    assert ask("approvals").json()["approved"] is False
    assert "approvals_left" not in ask("approvals").json()
    assert ask("approval_state").status_code == 404
    gitlab.acts.approve(gitlab.project, gitlab.request(), "ada")
    assert ask("approvals").json()["approved"] is True
    gitlab.acts.require_approvals(gitlab.project, ApprovalRule(name="Database", users=("bob",)))
    assert (ask("approvals").json()["approved"], ask("approvals").json()["approvals_left"]) == (False, 1)
    assert ask("approval_state").json()["rules"][0]["approved"] is False


# Lists


def read_entry(gitlab: GitlabEnvironment) -> dict[str, Any]:
    return gitlab.call("GET", "/merge_requests", state="opened").json()[0]


def read_one(gitlab: GitlabEnvironment) -> dict[str, Any]:
    return gitlab.call("GET", "/merge_requests/1").json()


def test_the_list_repeats_an_entry_while_the_merge_request_was_only_touched_within_a_minute(gitlab: GitlabEnvironment):
    """GitLab's `throttled_touch.rb` ignores a touch within a minute, and its API caches each entry of the list by the
    time of the last update (`present_cached` in `lib/api/merge_requests.rb`)."""
    gitlab.open(1)
    gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), title="A new title")
    first = read_entry(gitlab)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "!merge", by="ada")
    pushed = gitlab.acts.commit(gitlab.project, "topic-1", {"1.txt": "2"})
    gitlab.clock.move(58 * SECOND)
    assert read_entry(gitlab) == first
    assert (read_one(gitlab)["sha"], read_one(gitlab)["user_notes_count"]) == (pushed, 1)
    assert read_one(gitlab)["updated_at"] == first["updated_at"]
    assert [note["body"] for note in gitlab.call("GET", "/merge_requests/1/notes").json()] == ["!merge"]


@pytest.mark.parametrize("kind", ["note", "edit", "push", "approval"])
def test_what_happens_more_than_a_minute_after_the_last_update_is_listed(gitlab: GitlabEnvironment, kind: str):
    """See `throttled_touch.rb` of GitLab: only the first minute is special."""
    gitlab.open(1)
    project, request = gitlab.project, gitlab.request()
    note = gitlab.acts.add_note(project, request, "First", by="ada")
    gitlab.clock.move(61 * SECOND)
    first = read_entry(gitlab)
    match kind:
        case "note":
            gitlab.acts.add_note(project, request, "Second", by="ada")
        case "edit":
            gitlab.acts.edit_note(project, request, note, "Changed")
        case "push":
            gitlab.acts.commit(project, "topic-1", {"1.txt": "2"})
        case _:
            gitlab.acts.approve(project, request, "ada")
    assert read_entry(gitlab)["updated_at"] > first["updated_at"]


def test_a_change_of_the_merge_request_itself_is_listed_at_once(gitlab: GitlabEnvironment):
    """A title, a label or a state is an update and no touch."""
    gitlab.open(1)
    request, ada = gitlab.request(), gitlab.world.user("ada")
    for name, value in (("title", "New"), ("labels", ["ready"])):
        gitlab.acts.update(gitlab.project, request, ada, **{name: value})
        assert read_entry(gitlab)[name] == value


def test_an_entry_of_the_list_is_repeated_for_eight_hours_at_most(gitlab: GitlabEnvironment):
    """The time is the argument of `present_cached` in GitLab's `lib/api/merge_requests.rb`."""
    gitlab.open(1)
    gitlab.acts.update(gitlab.project, gitlab.request(), gitlab.world.user("ada"), title="A new title")
    first = read_entry(gitlab)
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "!merge", by="ada")
    gitlab.clock.move(8 * HOUR - MINUTE)
    assert read_entry(gitlab) == first
    gitlab.clock.move(2 * MINUTE)
    assert read_entry(gitlab)["user_notes_count"] == 1


def test_every_page_has_the_headers_of_gitlab(gitlab: GitlabEnvironment):
    """GitLab's REST documentation, section on pagination by offset."""
    for number in (1, 2, 3):
        gitlab.open(number)
    first = gitlab.call("GET", "/merge_requests", per_page=2, sort="desc")
    names = ("x-page", "x-per-page", "x-next-page", "x-prev-page", "x-total", "x-total-pages")
    assert [first.headers[name] for name in names] == ["1", "2", "2", "", "3", "2"]
    assert set(first.links) == {"first", "last", "next"}
    last = gitlab.call("GET", "/merge_requests", per_page=2, page=2)
    assert [last.headers[name] for name in names] == ["2", "2", "", "1", "3", "2"]
    assert set(last.links) == {"first", "last", "prev"}


def test_links_have_the_host_that_the_administrator_configured(gitlab: GitlabEnvironment):
    """`offset_header_builder.rb` of GitLab takes host and port from `external_url`."""
    gitlab.world.external_url = "http://git.example.com:443"
    gitlab.open(1)
    link = gitlab.call("GET", "/merge_requests").links["first"]["url"]
    assert link.startswith("http://git.example.com:443/api/v4/projects/acme%2Fapp/merge_requests?")


def test_a_page_of_notes_can_be_short_although_more_follow(gitlab: GitlabEnvironment):
    """A comment in `lib/api/notes.rb` of GitLab says so: it removes what the account cannot read after paging."""
    gitlab.open(1)
    for text in ("one", "two", "three"):
        gitlab.acts.add_note(gitlab.project, gitlab.request(), text, by="ada")
    gitlab.request().notes[1].is_hidden = True
    page = gitlab.call("GET", "/merge_requests/1/notes", per_page=2, sort="asc")
    assert [note["body"] for note in page.json()] == ["one"]
    assert page.headers["x-next-page"] == "2"


def test_notes_of_the_system_can_be_left_out(gitlab: GitlabEnvironment):
    """The parameter `activity_filter` of GitLab's notes."""
    gitlab.open(1)
    for text in ("one", "two"):
        gitlab.acts.add_note(gitlab.project, gitlab.request(), text, by="ada")
    gitlab.request().notes[0].system = True

    def ask(**params: str) -> list[str]:
        return [note["body"] for note in gitlab.call("GET", "/merge_requests/1/notes", sort="asc", **params).json()]

    assert ask() == ask(activity_filter="all_notes") == ["one", "two"]
    assert ask(activity_filter="only_comments") == ["two"]
    assert ask(activity_filter="only_activity") == ["one"]


# Projects that moved, and limits


def test_the_old_path_of_a_renamed_project_redirects_reads_and_refuses_everything_else(gitlab: GitlabEnvironment):
    """`find_project!` in `lib/api/helpers.rb` of GitLab, and the section on redirects of its REST documentation."""
    gitlab.open(1)
    gitlab.project.hooks.append(Hook(id=1, url="http://127.0.0.1:1/", secret="s"))
    gitlab.world.rename(gitlab.project, "acme/web/shop")
    read = gitlab.call("GET", "/merge_requests/1/notes", sort="asc")
    base = f"{gitlab.world.web_url}/api/v4/projects/{gitlab.project.id}"
    assert (read.status_code, read.headers["location"]) == (301, f"{base}/merge_requests/1/notes?sort=asc")
    assert gitlab.call("GET").headers["location"] == base
    written = gitlab.call("POST", "/merge_requests/1/notes", body="Hello")
    assert written.status_code == 405
    assert written.json() == {"message": "Non GET methods are not allowed for moved projects"}
    followed = httpx2.get(base, headers={"private-token": TOKEN}, trust_env=False)
    assert followed.json()["path_with_namespace"] == "acme/web/shop"
    gitlab.gitlab.deliveries.drop_all = True
    gitlab.acts.add_note(gitlab.project, gitlab.request(), "Hello", by="ada")
    body = gitlab.gitlab.deliveries.log[-1].delivery.body
    assert json.loads(body)["project"]["path_with_namespace"] == "acme/web/shop"


def test_git_works_with_the_old_and_the_new_path_of_a_renamed_project(gitlab: GitlabEnvironment, tmp_path: Path):
    """GitLab looks up repositories with `follow_redirects`; git does not see a redirect (gitlab-org/gitlab#513283)."""
    gitlab.open(1)
    gitlab.world.rename(gitlab.project, "acme/shop")
    for path in ("acme/app", "acme/shop"):
        url = gitlab.world.web_url.replace("http://", f"http://oauth2:{TOKEN}@")
        clone = Origin.create(tmp_path / path.replace("/", "-"))
        clone.run("fetch", "--quiet", f"{url}/{path}.git", "refs/heads/main:refs/heads/main")
        clone.run("push", "--quiet", f"{url}/{path}.git", f"refs/heads/main:refs/heads/from-{path}")
        assert gitlab.project.origin.ref(f"from-{path}") == clone.tip("main")


def test_the_case_of_a_path_does_not_matter(gitlab: GitlabEnvironment, tmp_path: Path):
    """GitLab's `repo_path.rb` and its API find a project in any case."""
    head = gitlab.open(1)
    base = gitlab.world.web_url
    answer = httpx2.get(f"{base}/api/v4/projects/ACME%2FApp", headers={"private-token": TOKEN}, trust_env=False)
    assert answer.json()["path_with_namespace"] == "acme/app"
    clone = Origin.create(tmp_path / "clone")
    clone.run("fetch", "--quiet", base.replace("http://", f"http://oauth2:{TOKEN}@") + "/ACME/App.git", "topic-1")
    assert clone.run("rev-parse", "FETCH_HEAD").decode().strip() == head


def test_the_old_path_leads_to_the_project_again_after_it_was_renamed_back(gitlab: GitlabEnvironment):
    """A redirect route of GitLab ends when a project takes its path."""
    head = gitlab.open(1)
    for path in ("acme/new", "acme/app"):
        gitlab.world.rename(gitlab.project, path)
    assert gitlab.call("GET", "/merge_requests/1").json()["sha"] == head
    assert gitlab.origin.ref("topic-1") == gitlab.project.origin.ref("topic-1") == head


def test_an_archived_project_can_only_be_read(gitlab: GitlabEnvironment, tmp_path: Path):
    """GitLab's `project_policy.rb` takes all abilities to write from an archived project."""
    head = gitlab.open(1)
    gitlab.project.archived = True
    assert gitlab.call("GET").json()["archived"] is True
    assert gitlab.call("GET", "/merge_requests/1").json()["user"] == {"can_merge": False}
    assert gitlab.call("POST", "/merge_requests/1/notes", body="Hello").status_code == 403
    assert gitlab.call("POST", f"/statuses/{head}", state="pending").status_code == 403
    assert gitlab.call("PUT", "/merge_requests/1/merge").status_code == 401
    url = gitlab.world.web_url.replace("http://", f"http://oauth2:{TOKEN}@") + "/acme/app.git"
    clone = Origin.create(tmp_path / "clone")
    clone.run("fetch", "--quiet", url, "refs/heads/main:refs/heads/main")
    with pytest.raises(CalledProcessError):
        clone.run("push", "--quiet", url, "refs/heads/main:refs/heads/other")


@pytest.mark.parametrize(("has_retry_after", "expected"), [(True, "60"), (False, None)])
def test_the_limit_of_one_endpoint_stops_nothing_else(
    gitlab: GitlabEnvironment, has_retry_after: bool, expected: str | None
):
    """GitLab's `lib/api/helpers/rate_limiter.rb`: new notes and members are limited per minute and account. The newest
    release sends the length of the whole interval as `Retry-After`, 16.5 sends nothing."""
    gitlab.open(1)
    gitlab.world.limits.has_retry_after = has_retry_after
    assert gitlab.world.limits.by_route == {NEW_NOTE: 300, "GET /projects/:id/members/all": 200}
    gitlab.world.limits.by_route[NEW_NOTE] = 2
    gitlab.clock.move(MINUTE - gitlab.clock.now() % MINUTE)
    answers = [gitlab.call("POST", "/merge_requests/1/notes", body="Hello") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].headers.get("retry-after") == expected
    assert not {"ratelimit-reset", "ratelimit-remaining"} & set(answers[2].headers)
    assert "too many times" in answers[2].json()["message"]["error"]
    assert gitlab.call("GET", "/merge_requests/1/notes").status_code == 200
    gitlab.clock.move(MINUTE)
    assert gitlab.call("POST", "/merge_requests/1/notes", body="Hello").status_code == 201


def test_the_general_limit_says_when_to_try_again(gitlab: GitlabEnvironment):
    """GitLab's documentation of rate limits names these headers."""
    gitlab.world.limits.general = 1
    gitlab.clock.move(MINUTE - gitlab.clock.now() % MINUTE)
    assert gitlab.call("GET").status_code == 200
    refused = gitlab.call("GET")
    assert (refused.status_code, refused.headers["ratelimit-remaining"]) == (429, "0")
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert int(refused.headers["ratelimit-reset"]) % 60 == 0
    gitlab.clock.move(MINUTE)
    assert gitlab.call("GET").status_code == 200


# Accounts


def test_what_a_deleted_account_wrote_belongs_to_the_ghost_user(gitlab: GitlabEnvironment):
    """GitLab's documentation of deleting accounts: contributions move to a ghost user."""
    gitlab.open(1)
    gitlab.request().author = User(7, "eve", state=DELETED)
    assert read_one(gitlab)["author"]["username"] == "ghost"


def test_a_branch_shows_what_its_rules_allow_to_developers(gitlab: GitlabEnvironment):
    """Source: GitLab's entity of a branch asks its protected branches for access levels of the role Developer."""
    gitlab.project.merge_access["main"] = [{"access_level": 30}]
    gitlab.project.push_access["main"] = [{"access_level": 40}]
    branch = gitlab.call("GET", "/repository/branches/main").json()
    assert (branch["developers_can_merge"], branch["developers_can_push"]) == (True, False)


def test_maintainers_can_edit_the_notes_of_others_and_developers_cannot(gitlab: GitlabEnvironment):
    """`admin_note` in GitLab's `project_policy.rb` belongs to Maintainers."""
    gitlab.open(1)
    note = gitlab.acts.add_note(gitlab.project, gitlab.request(), "First", by="ada")
    assert gitlab.call("PUT", f"/merge_requests/1/notes/{note.id}", body="Second").status_code == 200
    gitlab.project.members[BOT] = DEVELOPER
    assert gitlab.call("PUT", f"/merge_requests/1/notes/{note.id}", body="Third").status_code == 403
    assert note.body == "Second"


# Push rules


ADA, OURS, EVE = "ada@example.org", "bot@example.org", "eve@example.com"
PUSH_RULES: dict[str, tuple[dict[str, str | bool], dict[str, str], str, dict[str, str]]] = {
    "branch name": (
        {"branch_name_regex": "^feature/"},
        {"branch": "topic"},
        "Branch name 'topic' does not follow the pattern '^feature/'",
        {"branch": "feature/topic"},
    ),
    "name of the default branch": (
        {"branch_name_regex": "^feature/"},
        {"branch": "mainline"},
        "Branch name 'mainline' does not follow the pattern '^feature/'",
        {"branch": "main"},
    ),
    "message": (
        {"commit_message_regex": "^JIRA-[0-9]"},
        {"message": "A change for JIRA-7"},
        "Commit message does not follow the pattern '^JIRA-[0-9]'",
        {"message": "A change\n\nJIRA-7"},
    ),
    "forbidden message": (
        {"commit_message_negative_regex": "^WIP"},
        {"message": "A change\n\nWIP"},
        "Commit message contains the forbidden pattern '^WIP'",
        {"message": "No WIP"},
    ),
    "address of the committer": (
        {"author_email_regex": "@example.org$"},
        {"committer": EVE},
        f"Committer's email '{EVE}' does not follow the pattern '@example.org$'",
        {},
    ),
    "address of the author": (
        {"author_email_regex": "@example.org$"},
        {"author": EVE},
        f"Author's email '{EVE}' does not follow the pattern '@example.org$'",
        {},
    ),
    "committer who pushes": (
        {"commit_committer_check": True},
        {"committer": ADA},
        f"You cannot push commits for '{ADA}'. You can only push commits if the committer email is one of your own",
        {"committer": OURS},
    ),
    "name of the author": (
        {"commit_committer_name_check": True},
        {"author": ADA, "committer": ADA},
        "Your git username is inconsistent with GitLab account name",
        {"author": ADA, "committer": OURS},
    ),
    "sign-off": (
        {"reject_non_dco_commits": True},
        {"message": "A change"},
        "Commit message must contain a DCO signoff",
        {"message": f"A change\n\nSigned-off-by: Ada <{ADA}>"},
    ),
    "author with an account": (
        {"member_check": True},
        {"author": EVE},
        f"Author '{EVE}' is not a member of team",
        {},
    ),
    "committer with an account": (
        {"member_check": True},
        {"committer": EVE},
        f"Committer '{EVE}' is not a member of team",
        {},
    ),
    "several": (
        {"member_check": True, "commit_message_regex": "JIRA"},
        {"author": EVE},
        "Commit message does not follow the pattern 'JIRA'",
        {"message": "JIRA-7"},
    ),
}
"""Each with a push that it refuses, the words, and one that it accepts."""


def push(
    gitlab: GitlabEnvironment,
    *,
    branch: str = "topic",
    message: str = "A change",
    author: str = ADA,
    committer: str = ADA,
) -> str:
    """What git prints when our account pushes a commit that no ref has."""
    git, tip = ["git", "-C", str(gitlab.origin.path)], gitlab.origin.tip("main")
    people = ENVIRONMENT | {"GIT_AUTHOR_EMAIL": author, "GIT_COMMITTER_EMAIL": committer}
    commit = [*git, "commit-tree", f"{tip}^{{tree}}", "-p", tip, "-m", message]
    sha = subprocess.run(commit, env=people, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    url = f"{gitlab.world.web_url.replace('//', f'//oauth2:{TOKEN}@')}/acme/app.git"
    command = [*git, "push", url, f"{sha}:refs/heads/{branch}"]
    return subprocess.run(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=False).stderr


@pytest.mark.parametrize("name", PUSH_RULES)
def test_a_push_rule_refuses_branches_and_commits_with_the_words_of_gitlab(gitlab: GitlabEnvironment, name: str):
    """Sources: `branch_check.rb` and `commit_check.rb` in `ee/lib/ee/gitlab/checks/push_rules` of GitLab, for the order
    and the words; `push_rules_spec.rb` of its end-to-end tests for the name of the branch in the words; its
    documentation "Push rules" for the default branch, for the lines that `^` matches, and that one pattern is for the
    addresses of authors and committers."""
    rule, refused, words, accepted = PUSH_RULES[name]
    gitlab.world.users |= {"ada": User(7, "ada", public_email=ADA), BOT: User(8, BOT, commit_email=OURS)}
    gitlab.world.tokens[TOKEN] = Token(gitlab.world.user(BOT))
    gitlab.project.push_rule = rule
    gitlab.project.premium = True
    output = push(gitlab, **refused)
    assert f"remote: GitLab: {words}" in output
    assert "(pre-receive hook declined)" in output
    assert "rejected" not in push(gitlab, **accepted)
    gitlab.project.premium = False
    assert "rejected" not in push(gitlab, **(refused | {"branch": "mainline"}))
