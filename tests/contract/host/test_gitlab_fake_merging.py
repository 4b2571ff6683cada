"""The fake GitLab merges, squashes, and judges pipelines and commit statuses as GitLab does.

The docstrings name the file or the document of GitLab that a test follows.
"""

from typing import Any

import pytest

from mergeyard.domain.ids import Sha
from tests.contract.host.gitlab_environment import GitlabEnvironment
from tests.support.forges.gitlab.rules import detailed_merge_status
from tests.support.forges.gitlab.world import BOT, DEVELOPER, NEWEST, CommitStatus, Project

pytestmark = pytest.mark.long

OLD = (16, 5)
IN_2025 = (18, 0)


def read_one(gitlab: GitlabEnvironment) -> dict[str, Any]:
    return gitlab.call("GET", "/merge_requests/1").json()


def merge(gitlab: GitlabEnvironment, **params: Any) -> tuple[int, dict[str, Any]]:
    answer = gitlab.call("PUT", "/merge_requests/1/merge", **params)
    return answer.status_code, answer.json()


def add_fork(gitlab: GitlabEnvironment) -> Project:
    """A fork with the branch `topic`, of which merge request 1 is opened."""
    fork = gitlab.world.add_project(gitlab.gitlab.git_server, "eve/app")
    fork.origin.run("fetch", "--quiet", gitlab.origin.url, "refs/heads/main:refs/heads/main")
    fork.origin.branch("topic", base="main", files={"1.txt": "1"})
    gitlab.acts.open_merge_request(gitlab.project, "topic", source=fork)
    return fork


# Squash


def test_the_own_flag_of_the_merge_request_decides_about_squashing_and_false_in_the_merge_call_is_ignored(
    gitlab: GitlabEnvironment,
):
    """`lib/api/merge_requests.rb` of GitLab stores the parameter `squash` of the merge call only if it is true."""
    head = gitlab.open(1)
    assert gitlab.call("PUT", "/merge_requests/1", squash=True).json()["squash_on_merge"] is True
    status, merged = merge(gitlab, squash=False)
    assert (status, merged["state"]) == (200, "merged")
    assert merged["squash_commit_sha"] not in (None, head)
    parents = gitlab.origin.run("rev-list", "--parents", "-1", merged["merge_commit_sha"]).decode().split()
    assert parents[2] == merged["squash_commit_sha"]


def test_an_update_of_the_merge_request_takes_the_flag_away(gitlab: GitlabEnvironment):
    """The parameter `squash` of GitLab's call that updates a merge request."""
    gitlab.project.squash_option = "default_on"
    gitlab.open(1)
    assert (read_one(gitlab)["squash"], read_one(gitlab)["squash_on_merge"]) == (True, True)
    assert gitlab.call("PUT", "/merge_requests/1", squash=False).json()["squash"] is False
    assert merge(gitlab)[1]["squash_commit_sha"] is None


def test_true_in_the_merge_call_squashes_onto_the_merge_base(gitlab: GitlabEnvironment):
    """GitLab squashes where the source branch began, and then merges."""
    gitlab.open(1)
    base = gitlab.origin.tip("main")
    gitlab.acts.commit(gitlab.project, "main", {"other.txt": "1"})
    squashed = merge(gitlab, squash=True, squash_commit_message="One commit")[1]["squash_commit_sha"]
    assert gitlab.origin.run("rev-list", "--parents", "-1", squashed).decode().split()[1:] == [base]


@pytest.mark.parametrize(
    ("option", "flag", "expected"),
    [("always", False, True), ("never", True, False), ("default_on", False, False), ("default_off", True, True)],
)
def test_the_project_can_overrule_the_flag(gitlab: GitlabEnvironment, option: str, flag: bool, expected: bool):
    """`squash_on_merge?` of GitLab's `merge_request.rb`."""
    gitlab.open(1)
    gitlab.project.squash_option, gitlab.request().squash = option, flag
    assert read_one(gitlab)["squash_on_merge"] is expected
    assert (merge(gitlab)[1]["squash_commit_sha"] is not None) is expected


def test_a_protected_branch_can_overrule_the_project_in_premium_only(gitlab: GitlabEnvironment):
    """Squash settings for branches, gitlab-org/gitlab!211017 (Premium)."""
    gitlab.open(1)
    gitlab.project.branch_squash_options = {"main": "always"}
    assert read_one(gitlab)["squash_on_merge"] is False
    gitlab.project.premium = True
    assert read_one(gitlab)["squash_on_merge"] is True


# Pipelines


def test_a_pipeline_of_the_merge_request_decides_before_one_of_its_branch(gitlab: GitlabEnvironment):
    """GitLab's `pipelines_for_merge_request_finder.rb` sorts by source, and then by age."""
    head = gitlab.open(1)
    gitlab.project.pipelines_must_succeed = True
    of_request = gitlab.acts.add_merge_request_pipeline(gitlab.project, gitlab.request(), status="success")
    gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", status="failed")
    shown = read_one(gitlab)["head_pipeline"]
    assert (shown["id"], shown["sha"], shown["status"]) == (of_request.id, head, "success")
    assert (shown["source"], shown["ref"]) == ("merge_request_event", "refs/merge-requests/1/head")
    assert read_one(gitlab)["detailed_merge_status"] == "mergeable"


def test_a_pipeline_of_another_branch_with_the_same_commit_does_not_decide(gitlab: GitlabEnvironment):
    """The finder looks for pipelines of the source branch."""
    head = gitlab.open(1)
    gitlab.project.pipelines_must_succeed = True
    gitlab.acts.add_pipeline(gitlab.project, head, "another", status="success")
    assert (read_one(gitlab)["head_pipeline"], read_one(gitlab)["detailed_merge_status"]) == (None, "ci_must_pass")


def test_the_pipeline_of_an_older_head_is_shown_but_does_not_decide(gitlab: GitlabEnvironment):
    """`actual_head_pipeline` of GitLab's `merge_request.rb` compares the commit, the shown `head_pipeline` does not."""
    head = gitlab.open(1)
    gitlab.project.pipelines_must_succeed = True
    gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", status="success")
    gitlab.push(1)
    assert read_one(gitlab)["head_pipeline"]["sha"] == head
    assert read_one(gitlab)["detailed_merge_status"] == "ci_must_pass"


def test_a_merged_results_pipeline_runs_on_a_commit_that_the_head_does_not_lead_to(gitlab: GitlabEnvironment):
    """GitLab's documentation of merged results pipelines; `pipelines_finder.rb` filters by `sha` only."""
    head = gitlab.open(1)
    project = gitlab.project
    assert "merge_pipelines_enabled" not in gitlab.call("GET").json()
    project.premium = project.merge_pipelines_enabled = project.pipelines_must_succeed = True
    assert gitlab.call("GET").json()["merge_pipelines_enabled"] is True
    pipeline = gitlab.acts.add_merge_request_pipeline(project, gitlab.request(), status="running")
    assert pipeline.sha != head
    assert gitlab.call("GET", "/pipelines", sha=head).json() == []
    listed = gitlab.call("GET", "/merge_requests/1/pipelines").json()
    assert [(one["id"], one["sha"], one["ref"]) for one in listed] == [
        (pipeline.id, pipeline.sha, "refs/merge-requests/1/merge")
    ]
    assert read_one(gitlab)["head_pipeline"]["id"] == pipeline.id
    assert read_one(gitlab)["detailed_merge_status"] == "ci_still_running"
    assert gitlab.call("POST", f"/statuses/{head}", state="pending", pipeline_id=pipeline.id).status_code == 404


def test_the_pipelines_of_a_fork_are_in_its_project(gitlab: GitlabEnvironment):
    """GitLab's documentation of merge request pipelines in forks."""
    fork = add_fork(gitlab)
    gitlab.project.pipelines_must_succeed = True
    gitlab.acts.add_pipeline(gitlab.project, gitlab.head(), "topic", status="failed")
    pipeline = gitlab.acts.add_pipeline(fork, gitlab.head(), "topic", status="success")
    assert read_one(gitlab)["head_pipeline"]["project_id"] == fork.id
    assert read_one(gitlab)["detailed_merge_status"] == "mergeable"
    assert [one["id"] for one in gitlab.call("GET", "/merge_requests/1/pipelines").json()] == [pipeline.id]
    del fork.members[BOT]
    assert gitlab.call("GET", "/merge_requests/1/pipelines").json() == []


def test_without_ci_pipelines_cannot_be_read_but_commit_statuses_can(gitlab: GitlabEnvironment):
    """`lib/api/ci/pipelines.rb` of GitLab asks for `read_build`, which `project_policy.rb` takes away."""
    head = gitlab.open(1)
    gitlab.project.has_ci = False
    assert gitlab.call("POST", f"/statuses/{head}", state="success", name="unit").status_code == 201
    pipeline = gitlab.project.pipelines[0].id
    assert gitlab.call("GET", "/pipelines", sha=head).status_code == 403
    assert gitlab.call("GET", f"/pipelines/{pipeline}/bridges").status_code == 403
    assert gitlab.call("GET", f"/repository/commits/{head}/statuses").json()[0]["name"] == "unit"
    project = gitlab.call("GET").json()
    assert (project["jobs_enabled"], project["builds_access_level"]) == (False, "disabled")


@pytest.mark.parametrize(("version", "expected"), [(OLD, "ci_must_pass"), (NEWEST, "ci_still_running")])
def test_older_releases_report_a_pending_pipeline_as_not_passed(
    gitlab: GitlabEnvironment, version: tuple[int, int], expected: str
):
    """`detailed_merge_status_service.rb` of GitLab 16.5 asks only whether the pipeline runs."""
    head = gitlab.open(1)
    gitlab.project.pipelines_must_succeed, gitlab.project.version = True, version
    pipeline = gitlab.acts.add_pipeline(gitlab.project, head, "topic-1", status="pending")
    assert read_one(gitlab)["detailed_merge_status"] == expected
    pipeline.empty_status = "running"
    assert read_one(gitlab)["detailed_merge_status"] == "ci_still_running"


# Commit statuses


def report(gitlab: GitlabEnvironment, sha: Sha, state: str, **params: Any) -> tuple[int, Any]:
    answer = gitlab.call("POST", f"/statuses/{sha}", state=state, name="mergeyard", **params)
    return answer.status_code, answer.json()


def test_a_status_joins_the_newest_pipeline_of_the_commit_whatever_its_branch(gitlab: GitlabEnvironment):
    """`first_matching_pipeline` of GitLab's `create_commit_status_service.rb`."""
    head = gitlab.open(1)
    gitlab.acts.add_pipeline(gitlab.project, head, "topic-1")
    newest = gitlab.acts.add_pipeline(gitlab.project, head, "another")
    assert report(gitlab, head, "pending")[1]["pipeline_id"] == newest.id


def test_a_status_of_a_commit_without_a_pipeline_gets_one_of_the_first_branch_that_contains_it(
    gitlab: GitlabEnvironment,
):
    """The same service creates an `external` pipeline. Branches are in the order of their names."""
    head = gitlab.open(1)
    gitlab.origin.branch("a-stacked-branch", base="topic-1", files={"2.txt": "1"})
    pipeline_id = report(gitlab, head, "pending")[1]["pipeline_id"]
    created = next(one for one in gitlab.project.pipelines if one.id == pipeline_id)
    assert (created.ref, created.source, created.sha) == ("a-stacked-branch", "external", head)


def test_a_status_with_a_ref_or_a_pipeline_goes_there(gitlab: GitlabEnvironment):
    """Both parameters filter the pipelines of the commit in the same service."""
    head = gitlab.open(1)
    first = gitlab.acts.add_pipeline(gitlab.project, head, "another")
    assert report(gitlab, head, "pending", pipeline_id=first.id)[1]["pipeline_id"] == first.id
    created = report(gitlab, head, "pending", ref="topic-1")[1]
    assert (created["ref"], created["pipeline_id"] != first.id) == ("topic-1", True)
    assert report(gitlab, head, "success", ref="topic-1")[1]["pipeline_id"] == created["pipeline_id"]
    status, refusal = report(gitlab, head, "pending", pipeline_id=first.id, ref="topic-1")
    assert (status, refusal["message"]) == (404, "404 Pipeline for pipeline_id, sha and ref Not Found")


def test_a_commit_that_no_branch_has_is_refused_unless_the_ref_is_given(gitlab: GitlabEnvironment):
    """The service needs a ref, and takes the given one without a look at the branches."""
    add_fork(gitlab)
    status, refusal = report(gitlab, gitlab.head(), "pending")
    assert (status, refusal["message"]) == (404, "404 References for commit Not Found")
    assert report(gitlab, Sha("1" * 40), "pending")[1]["message"] == "404 Commit Not Found"
    status, created = report(gitlab, gitlab.head(), "pending", ref="topic")
    assert (status, created["ref"]) == (201, "topic")
    assert read_one(gitlab)["head_pipeline"] is None


@pytest.mark.parametrize(
    ("old", "new", "event"),
    [
        ("pending", "pending", "enqueue"),
        ("running", "pending", "enqueue"),
        ("running", "running", "run"),
        ("running", "skipped", "skip"),
    ],
)
def test_a_change_of_state_that_gitlab_does_not_have_is_refused_with_its_words(
    gitlab: GitlabEnvironment, old: str, new: str, event: str
):
    """The state machine of GitLab's `commit_status.rb`. Nothing of the refused report is stored."""
    head = gitlab.open(1)
    report(gitlab, head, old, description="First")
    status, refusal = report(gitlab, head, new, description="Second")
    assert status == 400
    assert refusal["message"].startswith(f"Cannot transition status via :{event} from :{old} ")
    assert read_status(gitlab).description == "First"


@pytest.mark.parametrize(
    ("old", "new"),
    [("pending", "running"), ("pending", "skipped"), ("pending", "success"), ("running", "failed")],
)
def test_an_unfinished_status_is_changed_in_place(gitlab: GitlabEnvironment, old: str, new: str):
    """The same state machine."""
    head = gitlab.open(1)
    first, second = report(gitlab, head, old, description="First"), report(gitlab, head, new, description="Second")
    assert (first[1]["id"], new, "Second") == (second[1]["id"], second[1]["status"], second[1]["description"])


def test_a_finished_status_and_one_of_another_account_are_replaced(gitlab: GitlabEnvironment):
    """`external_commit_status_scope` of the service: unfinished ones of the same account."""
    head = gitlab.open(1)
    first = report(gitlab, head, "success")[1]
    second = report(gitlab, head, "pending")[1]
    pipeline = gitlab.project.pipelines[0]
    third = gitlab.acts.report_status(gitlab.project, pipeline, "mergeyard", "pending", by=gitlab.world.user("ada"))
    assert third
    assert len({first["id"], second["id"], third.id}) == 3
    listed = gitlab.call("GET", f"/repository/commits/{head}/statuses", name="mergeyard").json()
    assert [one["id"] for one in listed] == [third.id]
    assert gitlab.call("GET", f"/repository/commits/{head}/statuses", name="other").json() == []


def test_two_reports_at_once_conflict(gitlab: GitlabEnvironment):
    """The service holds a lock per commit and answers 409 after ten seconds of waiting."""
    head = gitlab.open(1)
    gitlab.project.busy_statuses = 1
    assert report(gitlab, head, "pending")[0] == 409
    assert report(gitlab, head, "pending")[0] == 201


def test_an_address_that_gitlab_does_not_store_is_refused(gitlab: GitlabEnvironment):
    """`generic_commit_status.rb` of GitLab: at most 255 characters, and the rules for outbound requests."""
    head = gitlab.open(1)
    assert report(gitlab, head, "pending", target_url="https://ci.example/" + "x" * 236)[0] == 201
    status, refusal = report(gitlab, head, "success", target_url="https://ci.example/" + "x" * 237)
    assert (status, list(refusal["message"])) == (400, ["target_url"])
    gitlab.project.blocks_urls = True
    status, refusal = report(gitlab, head, "success", target_url="https://ci.example/")
    assert (status, "is blocked" in refusal["message"]["target_url"][0]) == (400, True)


def test_only_newer_releases_accept_skipped(gitlab: GitlabEnvironment):
    """The values of `state` in `lib/api/commit_statuses.rb` of GitLab 16.5 and of the newest."""
    head = gitlab.open(1)
    gitlab.project.version = OLD
    assert report(gitlab, head, "skipped") == (400, {"error": "state does not have a valid value"})
    gitlab.project.version = NEWEST
    assert report(gitlab, head, "skipped")[0] == 201


def read_status(gitlab: GitlabEnvironment) -> CommitStatus:
    return gitlab.project.statuses[-1]


# Merging


def test_the_newest_release_compares_the_head_first_and_refuses_all_obstacles_alike(gitlab: GitlabEnvironment):
    """`lib/api/merge_requests.rb` of GitLab; until 2025 a conflict was 422 and came before the head."""
    gitlab.open(1)
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "another"})
    assert merge(gitlab, sha="1" * 40)[0] == 409
    assert merge(gitlab)[0] == 405
    gitlab.project.version = IN_2025
    assert merge(gitlab, sha="1" * 40)[0] == 422
    gitlab.request().title = "Draft: A change"
    assert merge(gitlab)[0] == 405


def test_older_releases_have_other_words_for_a_conflict_and_none_for_a_missing_rebase(gitlab: GitlabEnvironment):
    """Until 16.10 (gitlab-org/gitlab!142904, !144729); the merge call refuses with 422."""
    gitlab.open(1)
    gitlab.project.version = OLD
    gitlab.project.merge_method = "ff"
    gitlab.acts.commit(gitlab.project, "main", {"other.txt": "1"})
    assert detailed_merge_status(gitlab.project, gitlab.request()) == "mergeable"
    assert merge(gitlab)[0] == 422
    gitlab.acts.commit(gitlab.project, "main", {"1.txt": "another"})
    assert detailed_merge_status(gitlab.project, gitlab.request()) == "broken_status"
    gitlab.project.version = NEWEST
    assert detailed_merge_status(gitlab.project, gitlab.request()) == "conflict"


def test_a_draft_whose_head_is_pushed_to_the_target_is_merged_unless_it_was_closed(gitlab: GitlabEnvironment):
    """`post_merge_manually_merged` in GitLab's `refresh_service.rb` takes drafts too (gitlab-org/gitlab#455133)."""
    gitlab.open(1, draft=True)
    gitlab.open(2, draft=True)
    gitlab.close(2)
    heads = {number: gitlab.head(number) for number in (1, 2)}
    before = gitlab.origin.tip("main")
    gitlab.origin.commit("main", {"1.txt": "1"}, merging=heads[1])
    after = gitlab.origin.commit("main", {"2.txt": "1"}, merging=heads[2])
    gitlab.origin.delete_ref("topic-1")
    deletion = (heads[1], None)
    updates = {"refs/heads/topic-1": deletion, "refs/heads/main": (before, after)}
    gitlab.acts.on_refs_updated(gitlab.project, gitlab.world.user("ada"), updates)
    assert [gitlab.request(number).state for number in (1, 2)] == ["merged", "closed"]


def test_a_push_that_does_not_contain_the_head_as_a_new_commit_merges_nothing(gitlab: GitlabEnvironment):
    """The same method takes the commits between the old and the new tip. Here the head was there before."""
    head = gitlab.open(1)
    gitlab.origin.commit("main", {"1.txt": "1"}, merging=head)
    gitlab.acts.commit(gitlab.project, "main", {"other.txt": "1"})
    assert gitlab.request().state == "opened"


def test_a_merge_request_without_changes_is_not_merged_by_a_push(gitlab: GitlabEnvironment):
    """The same method leaves out merge requests with an empty diff."""
    gitlab.open(1)
    gitlab.acts.commit(gitlab.project, "topic-1", {"1.txt": None})
    gitlab.land(1)
    assert gitlab.request().state == "opened"


def test_only_a_merge_by_gitlab_deletes_the_source_branch(gitlab: GitlabEnvironment):
    """GitLab's `merge_service.rb` deletes it, `post_merge_service.rb` does not."""
    for number in (1, 2):
        gitlab.open(number)
        gitlab.call("PUT", f"/merge_requests/{number}", remove_source_branch=True)
    assert read_one(gitlab)["force_remove_source_branch"] is True
    gitlab.land(2)
    assert gitlab.request(2).state == "merged"
    assert gitlab.origin.ref("topic-2") is not None
    assert merge(gitlab)[1]["state"] == "merged"
    assert gitlab.origin.ref("topic-1") is None


def test_a_branch_can_be_deleted_unless_it_is_protected(gitlab: GitlabEnvironment):
    """GitLab's branches API. The merge request of a deleted branch is closed."""
    gitlab.open(1)
    gitlab.project.protected["release-*"] = 40
    gitlab.origin.branch("release-1", base="main")
    gitlab.project.members[BOT] = DEVELOPER
    answers = [gitlab.call("DELETE", f"/repository/branches/{name}") for name in ("topic-1", "topic-1", "release-1")]
    assert [answer.status_code for answer in answers] == [204, 404, 403]
    assert gitlab.request().state == "closed"
