"""Input is taken with tolerance where the contract says so, and refused with a pointer where it does not."""

from typing import Any

import pytest
from msgspec import UNSET, Struct, to_builtins

from mergeyard.api import answers, queue_settings, requests, tolerance
from mergeyard.api.errors import ApiError
from mergeyard.api.wire import RepoReference
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.repositories import QueueKey, Repo
from mergeyard.domain.states import PrState, QueueState
from mergeyard.domain.targets import ALL, NOTHING, named
from tests.support.door import PR, QUEUE

SHA = "0123456789abcdef0123456789abcdef01234567"


def refusal(kind: type[Struct], members: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ApiError) as refused:
        tolerance.request(kind, members)
    return refused.value.code, refused.value.errors[0].pointer


def targets(value: Any) -> Any:
    return tolerance.request(requests.SetImpactedTargets, PR | {"impactedTargets": value}).impacted_targets.targets


# Numbers


@pytest.mark.parametrize("number", [12, "12", 12.0, "012"], ids=repr)
def test_a_number_may_be_digits_or_whole(number: Any):
    assert tolerance.request(requests.CancelPullRequest, QUEUE | {"pr": {"number": number}}).pr.number == 12


@pytest.mark.parametrize(
    "number",
    [1.5, True, 0, -1, "0", "-1", "1.0", "", "x", "١٢", 2**31, str(2**31), "9" * 5000, 1e300, None, [], {}],
    ids=lambda number: repr(number)[:9],
)
def test_what_is_no_number_of_a_pull_request_is_refused(number: Any):
    pr = {"pr": {"number": number}}
    assert refusal(requests.CancelPullRequest, QUEUE | pr) == ("invalid_request", "/pr/number")


@pytest.mark.parametrize(
    ("given", "value"), [(0, 0), (255, 255), ("URGENT", 0), ("high", 10), ("Medium", 100), ("low", 200)]
)
def test_a_priority_is_a_number_or_a_name_in_any_case(given: Any, value: int):
    assert tolerance.request(requests.SubmitPullRequest, PR | {"priority": given}).priority == value


@pytest.mark.parametrize("priority", [-1, 256, "highest", "33", True, None, 1.5])
def test_other_priorities_are_refused(priority: Any):
    assert refusal(requests.SubmitPullRequest, PR | {"priority": priority}) == ("invalid_request", "/priority")


# Members


def test_unknown_members_are_passed_over():
    asked: dict[str, Any] = PR | {"unknown": {"deep": []}, "repo": QUEUE["repo"] | {"id": 7}}
    assert tolerance.request(requests.CancelPullRequest, asked).key == QueueKey(
        Repo("git.local", "acme", "app"), "main"
    )


def test_what_was_not_given_is_told_from_what_was():
    asked = tolerance.request(requests.SubmitPullRequest, PR | {"noBatch": False})
    assert (asked.no_batch, asked.force, asked.priority) == (False, UNSET, UNSET)


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({}, "/repo"),
    ({"repo": None}, "/repo"),
    ({"repo": []}, "/repo"),
    ({"repo": {"host": "h", "owner": "o"}}, "/repo/name"),
    ({"repo": {"host": 1, "owner": "o", "name": "n"}}, "/repo/host"),
    ({"repo": QUEUE["repo"]}, "/targetBranch"),
    (QUEUE | {"targetBranch": 7}, "/targetBranch"),
    (QUEUE, "/pr"),
    (QUEUE | {"pr": 12}, "/pr"),
    (QUEUE | {"pr": {}}, "/pr/number"),
    (PR | {"force": "yes"}, "/force"),
    (PR | {"noBatch": None}, "/noBatch"),
    (QUEUE | {"pr": {"number": 1, "sha": "abc"}}, "/pr/sha"),
    (QUEUE | {"pr": {"number": 1, "sha": SHA + "0"}}, "/pr/sha"),
    (QUEUE | {"pr": {"number": 1, "sha": SHA[:-1] + "\n"}}, "/pr/sha"),
]


@pytest.mark.parametrize(("members", "pointer"), MISFITS)
def test_a_missing_null_or_mistyped_member_is_pointed_at(members: dict[str, Any], pointer: str):
    assert refusal(requests.SubmitPullRequest, members) == ("invalid_request", pointer)


def test_a_message_is_in_a_persons_words():
    with pytest.raises(ApiError, match="`/pr/number`: expected an integer, got true or false"):
        tolerance.request(requests.CancelPullRequest, QUEUE | {"pr": {"number": True}})


@pytest.mark.parametrize(
    ("part", "name"),
    [("owner", ".."), ("name", "-x"), ("name", "a/b"), ("owner", ""), ("owner", "a/../b"), ("owner", "a//b")],
)
def test_a_repository_has_a_good_name(part: str, name: str):
    members = QUEUE | {"repo": QUEUE["repo"] | {part: name}}
    assert refusal(requests.GetQueue, members) == ("invalid_repo", f"/repo/{part}")


def test_a_host_is_lower_cased_and_other_names_are_not():
    asked = tolerance.request(
        requests.GetQueue, QUEUE | {"repo": {"host": "Git.Local", "owner": "Acme", "name": "App"}}
    )
    assert asked.key.repo == Repo("git.local", "Acme", "App")


def test_a_repository_may_lie_in_nested_groups():
    repo = QUEUE["repo"] | {"owner": "acme/tools", "name": "app"}
    asked = tolerance.request(requests.GetQueue, QUEUE | {"repo": repo})
    assert (asked.key.repo.owner, asked.key.repo.name) == ("acme/tools", "app")


@pytest.mark.parametrize("branch", ["", "-x", "a..b", "mergeyard/x", "HEAD", "a" * 256])
def test_a_target_branch_has_a_good_name(branch: str):
    assert refusal(requests.GetQueue, QUEUE | {"targetBranch": branch}) == ("invalid_branch", "/targetBranch")


# Impacted targets


@pytest.mark.parametrize("value", ["ALL", "all", "IMPACTS_ALL", "Impacts_All", ["//a", "ALL"]])
def test_all_has_several_spellings(value: Any):
    assert targets(value) == ALL


def test_targets_are_a_set():
    assert targets(["b", "a", "b"]) == named("a", "b")
    assert targets([]) == NOTHING
    assert targets(["é" * 512]) == named("é" * 512)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ("some", ""),
        (None, ""),
        ({}, ""),
        (7, ""),
        (["a", ""], "/1"),
        (["a", 7], "/1"),
        ([None], "/0"),
        (["é" * 513], "/0"),
        (["ALL", ""], "/1"),
    ],
)
def test_other_targets_are_refused(value: Any, pointer: str):
    asked = PR | {"impactedTargets": value}
    assert refusal(requests.SetImpactedTargets, asked) == ("invalid_request", f"/impactedTargets{pointer}")


def test_a_sha_is_lower_cased():
    asked: dict[str, Any] = QUEUE | {"pr": {"number": 1, "sha": SHA.upper()}, "impactedTargets": []}
    assert tolerance.request(requests.SetImpactedTargets, asked).pr.sha == SHA


# Settings


def changes(**settings: Any) -> Any:
    return tolerance.request(requests.UpdateQueue, QUEUE | settings)


def test_only_the_settings_that_were_given_change():
    assert changes().given == {}
    assert changes(mode="PARALLEL", batchingMinSize=7).given == {"mode": Mode.PARALLEL, "batching_min_size": 7}


def test_every_default_is_taken_as_a_setting():
    shown = answers.queue(Config(), state=QueueState.RUNNING, branch="main", repo=RepoReference("h", "o", "n"))
    settings = to_builtins(shown)
    for member in ("state", "branch", "repo"):
        del settings[member]
    assert Config(**tolerance.request(requests.CreateQueue, QUEUE | settings).given) == Config()  # pyright: ignore


def test_a_state_is_taken_in_any_case():
    assert changes(state="paused").state == "PAUSED"


def test_required_statuses_can_be_named_dropped_or_left():
    assert changes(requiredStatuses=["unit"]).given == {"required_statuses": ("unit",)}
    assert changes(requiredStatuses=None).given == {"required_statuses": None}
    assert changes(deleteRequiredStatuses=True).given == {"required_statuses": None}
    assert changes(deleteRequiredStatuses=False).given == {}


@pytest.mark.parametrize(
    ("setting", "value", "pointer"),
    [
        ("mode", None, "/mode"),
        ("mode", "triple", "/mode"),
        ("mode", 1, "/mode"),
        ("concurrency", 0, "/concurrency"),
        ("concurrency", 1001, "/concurrency"),
        ("concurrency", "5", "/concurrency"),
        ("concurrency", True, "/concurrency"),
        ("concurrency", None, "/concurrency"),
        ("batch", "true", "/batch"),
        ("requiredStatuses", [], "/requiredStatuses"),
        ("requiredStatuses", "unit", "/requiredStatuses"),
        ("requiredStatuses", ["unit", ""], "/requiredStatuses/1"),
        ("requiredStatuses", ["unit", None], "/requiredStatuses/1"),
        ("enqueueingLabel", 1, "/enqueueingLabel"),
        ("state", "SWITCHING_MODES", "/state"),
        ("state", None, "/state"),
        ("notReadyTimeoutHours", 721, "/notReadyTimeoutHours"),
    ],
)
def test_a_setting_out_of_its_range_is_refused(setting: str, value: Any, pointer: str):
    assert refusal(requests.UpdateQueue, QUEUE | {setting: value}) == ("invalid_request", pointer)


def test_naming_and_dropping_required_statuses_at_once_is_refused():
    both = {"requiredStatuses": ["unit"], "deleteRequiredStatuses": True}
    assert refusal(requests.UpdateQueue, QUEUE | both)[0] == "invalid_request"


@pytest.mark.parametrize("member", ["concurency", "spekulation", "pr", "batching_min_size", "a/b~c"])
def test_a_member_that_is_no_setting_is_refused(member: str):
    pointer = "/" + member.replace("~", "~0").replace("/", "~1")
    for kind in (requests.CreateQueue, requests.UpdateQueue):
        assert refusal(kind, QUEUE | {member: 1}) == ("unknown_field", pointer)


@pytest.mark.parametrize("member", ["state", "deleteRequiredStatuses"])
def test_a_new_queue_takes_settings_only(member: str):
    assert refusal(requests.CreateQueue, QUEUE | {member: "PAUSED"}) == ("unknown_field", f"/{member}")


def test_every_setting_has_a_meaning():
    assert tuple(queue_settings.MEANINGS) == queue_settings.NAMES


# Lists


def test_a_list_is_restricted_by_state_and_time():
    asked = QUEUE | {"state": "Merged", "since": "2026-11-14T10:16:02Z", "take": 100}
    request = tolerance.request(requests.ListPullRequests, asked)
    assert (request.state, request.since, request.until, request.take) == (PrState.MERGED, 1794651362000, UNSET, 100)


@pytest.mark.parametrize(
    ("member", "value"),
    [("take", 0), ("take", 101), ("since", "yesterday"), ("until", 5), ("state", "gone"), ("cursor", "")],
)
def test_a_list_is_restricted_by_nothing_else(member: str, value: Any):
    assert refusal(requests.ListPullRequests, QUEUE | {member: value}) == ("invalid_request", f"/{member}")


def test_at_most_50_pull_requests_are_read_at_once():
    prs = [{"number": str(at)} for at in range(1, 51)]
    assert tolerance.request(requests.GetSubmittedPullRequests, QUEUE | {"prs": prs}).prs[49].number == 50
    assert refusal(requests.GetSubmittedPullRequests, QUEUE | {"prs": [*prs, prs[0]]}) == ("invalid_request", "/prs")
    assert refusal(requests.GetSubmittedPullRequests, QUEUE | {"prs": [{"number": "x"}]})[1] == "/prs/0/number"


def test_a_pull_request_is_named_by_number_or_branch():
    by_branch = tolerance.request(requests.GetSubmittedPullRequest, QUEUE | {"pr": {"branch": "fix"}})
    assert (by_branch.pr.number, by_branch.pr.branch) == (UNSET, "fix")
    assert refusal(requests.GetSubmittedPullRequest, QUEUE | {"pr": {}}) == ("invalid_request", "/pr/number")
