"""Invalid requests: each is refused with its error code and changes nothing; and the notations that are accepted."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json

from tests.contract.api.harness import QUEUE, REPOSITORY, SharedApi, code_of, shared_api

SUBMITTED = json.encode(QUEUE | {"pr": {"number": 1}})


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedApi]:
    """A service with one pull request that is not submitted."""
    with shared_api(tmp_path_factory.mktemp("bad")) as standing:
        standing.api.world.open(1)
        yield standing
        queue = standing.wait_for(standing.api.ask("getQueue"))
        assert queue["enqueuedPullRequests"] == []


def refused(standing: SharedApi, body: Any, endpoint: str = "submitPullRequest") -> str:
    return code_of(standing.wait_for(standing.api.send(endpoint, body)))


def with_more(more: bytes) -> bytes:
    """A valid request with one more member."""
    return SUBMITTED[:-1] + b',"more":' + more + b"}"


NO_JSON = {
    "empty": b"",
    "blank": b" \n",
    "trailing bytes": SUBMITTED + b"x",
    "two": SUBMITTED + SUBMITTED,
    "NaN": with_more(b"NaN"),
    "Infinity": with_more(b"Infinity"),
    "-Infinity": with_more(b"-Infinity"),
    "no UTF-8": with_more(b'"\xff"'),
    "overlong UTF-8": with_more(b'"\xc0\x80"'),
    "surrogate in UTF-8": with_more(b'"\xed\xa0\x80"'),
    "byte order mark": b"\xef\xbb\xbf" + SUBMITTED,
    "UTF-16": SUBMITTED.decode().encode("utf-16"),
    "UTF-32": SUBMITTED.decode().encode("utf-32-le"),
    "lone surrogate": with_more(b'"\\ud800"'),
    "swapped surrogates": with_more(b'"\\udc00\\ud800"'),
    "nested too deeply": with_more(b"[" * 100_000 + b"]" * 100_000),
    "single quotes": SUBMITTED.replace(b'"', b"'"),
    "trailing comma": SUBMITTED[:-1] + b",}",
    "comment": SUBMITTED + b"// so",
    "bare control character": with_more(b'"\x00"'),
    "leading zero": with_more(b"01"),
    "form": b"pr=1",
}


@pytest.mark.parametrize("name", NO_JSON)
def test_invalid_json_is_refused(standing: SharedApi, name: str):
    assert refused(standing, NO_JSON[name]) == "invalid_json"


UNUSUAL = {
    "a member twice": b'1,"more":{"a":1,"a":2}',
    "nested lists": b"[" * 100 + b"]" * 100,
    "many objects": b"[" + b"{}," * 20_000 + b"{}]",
    "a surrogate pair": b'"\\ud83d\\ude00"',
    "thousands of digits": b"1" * 5000,
    "a huge float": b"1e999",
    "NUL": b'"\\u0000"',
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unknown_members_are_ignored_whatever_their_json_is(standing: SharedApi, name: str):
    body = with_more(UNUSUAL[name]).replace(b'"number":1', b'"number":9')
    assert refused(standing, body) == "pr_not_found"


@pytest.mark.parametrize(
    ("endpoint", "members"),
    [
        ("getQueue", {"repo": REPOSITORY | {"owner": "a\0"}}),
        ("getQueue", {"targetBranch": "a\0"}),
        ("getSubmittedPullRequest", {"pr": {"branch": "a\0"}}),
        ("getMergeQueueTestingDetails", {"testRunId": "a\0"}),
        ("setImpactedTargets", {"pr": {"number": 1}, "impactedTargets": ["a\0"]}),
        ("updateQueue", {"requiredStatuses": ["a\0"]}),
        ("updateQueue", {"batchingRules": [{"a\0": 1}]}),
    ],
)
def test_a_name_with_a_nul_is_refused(standing: SharedApi, endpoint: str, members: dict[str, Any]):
    assert refused(standing, QUEUE | members, endpoint) == "invalid_request"


@pytest.mark.parametrize("body", [b"[]", b"1", b'"x"', b"null", b"true", b"{}"])
def test_json_that_does_not_match_the_schema_is_refused(standing: SharedApi, body: bytes):
    assert refused(standing, body) == "invalid_request"


NUMBERS: list[Any] = [
    0, -1, 1.5, True, False, 2**31, 2**70, "0", "1.5", "", "x", "-1", " 1", "+1", "\u0661", "2147483648", "9" * 30,
    None, [], {}, [1],
]  # fmt: skip
MEMBERS: dict[str, list[Any]] = {
    "pr": [
        None, 1, "1", [], {}, {"branch": "x"}, {"number": 1, "sha": ""}, {"number": 1, "sha": "1" * 39},
        {"number": 1, "sha": "1" * 41}, {"number": 1, "sha": "g" * 40}, {"number": 1, "sha": None},
    ],
    "repo": [None, "acme/app", [], {}, REPOSITORY | {"host": None}, REPOSITORY | {"owner": 1}],
    "targetBranch": [None, 1, ["main"], {}],
    "priority": [-1, 256, 1.5, True, "highest", "", "10", []],
    "noBatch": [0, 1, "true", None],
    "force": [0, "yes", None],
}  # fmt: skip
WRONG = [
    *({"pr": {"number": number}} for number in NUMBERS),
    *({name: value} for name, values in MEMBERS.items() for value in values),
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_member_of_the_wrong_type_or_out_of_range_is_refused(standing: SharedApi, wrong: dict[str, Any]):
    assert refused(standing, QUEUE | {"pr": {"number": 1}} | wrong) == "invalid_request"


@pytest.mark.parametrize("missing", ["repo", "targetBranch", "pr"])
def test_a_missing_member_is_named(standing: SharedApi, missing: str):
    body = QUEUE | {"pr": {"number": 1}}
    del body[missing]
    answer = standing.wait_for(standing.api.send("submitPullRequest", body)).json()
    assert (answer["code"], answer["errors"]) == (
        "invalid_request",
        [{"pointer": f"/{missing}", "message": "is required"}],
    )


@pytest.mark.parametrize("targets", ["", "a", "ALL ", None, 1, {}, [1], [None], [["a"]], ["x" * 1025], ["é" * 513]])
def test_invalid_impacted_targets_are_refused(standing: SharedApi, targets: Any):
    body = QUEUE | {"pr": {"number": 1}, "impactedTargets": targets}
    assert refused(standing, body, "setImpactedTargets") == "invalid_request"


# Names


@pytest.mark.parametrize(
    "part", ["", ".", "..", "-x", "a//b", "a/../b", "a b", "a\n", "é", "x" * 101, "a:b", "%2e", "~"]
)
def test_an_invalid_repository_name_is_refused(standing: SharedApi, part: str):
    for name in ("owner", "name"):
        assert refused(standing, QUEUE | {"repo": REPOSITORY | {name: part}}, "getQueue") == "invalid_repo"


@pytest.mark.parametrize("part", ["x", "x" * 100, "a.b", "_", "...", ".x", "x-", "A-1_b.c"])
def test_a_valid_repository_name_is_looked_up(standing: SharedApi, part: str):
    body = QUEUE | {"repo": REPOSITORY | {"name": part}}
    assert refused(standing, body, "getQueue") == "queue_not_found"
    assert refused(standing, body, "createQueue") == "repository_not_found"


def test_nested_owners_are_refused_for_a_host_without_groups(standing: SharedApi):
    nested = QUEUE | {"repo": REPOSITORY | {"owner": "acme/tools"}}
    assert refused(standing, nested, "getQueue") == "invalid_repo"
    assert refused(standing, nested, "createQueue") == "invalid_repo"
    assert refused(standing, QUEUE | {"repo": REPOSITORY | {"name": "a/b"}}, "getQueue") == "invalid_repo"


BRANCHES = [
    "", " ", "-", "-x", "a..b", "a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "a@{b", "/a", "a/", "a//b",
    ".a", "a/.b", "a.lock", "a.lock/b", "a.", "a\x7fb", "a\tb", "HEAD", "@{-1}", "refs/heads/a.lock",
    "main2", "a/b", "é", "@", "a@b", "a{b", "a]b", "a.b", "a'b", 'a"b', "refs/heads/x", "a.lockx", "HEADS",
    "FETCH_HEAD",     "x" * 255, "é" * 127, "a$(b)", "a;b", "#", "a,b",
]  # fmt: skip


@pytest.mark.parametrize("branch", BRANCHES)
def test_branch_names_are_accepted_as_git_accepts_them(standing: SharedApi, branch: str):
    """In addition to the rules of git, a branch is no longer than a file name can be."""
    command = ["git", "check-ref-format", "--branch", branch]
    taken = subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0
    expected = "queue_not_found" if taken else "invalid_branch"
    assert refused(standing, QUEUE | {"targetBranch": branch}, "getQueue") == expected


@pytest.mark.parametrize("branch", ["x" * 256, "é" * 128, "mergeyard/x", "mergeyard/pr-1/y"])
def test_a_branch_that_is_too_long_or_our_own_is_refused(standing: SharedApi, branch: str):
    assert refused(standing, QUEUE | {"targetBranch": branch}, "getQueue") == "invalid_branch"


@pytest.mark.parametrize("host", ["", "elsewhere.example", "git.local.", "git.local:80", "http://git.local"])
def test_a_host_that_is_not_configured_is_refused(standing: SharedApi, host: str):
    assert refused(standing, QUEUE | {"repo": REPOSITORY | {"host": host}}, "getQueue") == "host_not_allowed"


@pytest.mark.parametrize(
    ("endpoint", "members"),
    [
        ("getQueue", {"repo": REPOSITORY | {"host": "x" * 1_000_000}}),
        ("getMergeQueueTestingDetails", {"testRunId": "x" * 1_000_000}),
        ("getSubmittedPullRequest", {"pr": {"branch": "x" * 1_000_000}}),
        ("updateQueue", {"x" * 1_000_000: 1}),
        ("updateQueue", {"mode": "x" * 1_000_000}),
        ("listPullRequests", {"cursor": "x" * 1_000_000}),
    ],
    ids=["host", "run", "branch", "setting", "word", "cursor"],
)
def test_an_error_message_does_not_repeat_the_whole_input(standing: SharedApi, endpoint: str, members: dict[str, Any]):
    answer = standing.wait_for(standing.api.send(endpoint, QUEUE | members))
    assert code_of(answer)
    assert len(answer.content) < 2000


def test_names_of_plain_repositories_are_compared_exactly_and_hosts_without_case(standing: SharedApi):
    for name in ("owner", "name"):
        spelled = REPOSITORY | {name: REPOSITORY[name].upper()}
        assert refused(standing, QUEUE | {"repo": spelled}, "getQueue") == "queue_not_found"
    response = standing.wait_for(standing.api.ask("getQueue", repo=REPOSITORY | {"host": "GIT.LOCAL"}))
    assert response["repo"] == REPOSITORY


# Accepted notations


@pytest.mark.parametrize("number", [7, "7", 7.0, "0007"], ids=repr)
def test_a_number_is_accepted_in_several_notations(standing: SharedApi, number: Any):
    api = standing.api
    if api.world.origin.ref("feature7") is None:
        api.world.open(7)
    response = standing.wait_for(api.ask("submitPullRequest", pr={"number": number}, more="ignored"))
    assert response["prNumber"] == 7
    assert b'"prNumber":7,' in api.responses[-1].content
    standing.wait_for(api.ask("cancelPullRequest", pr={"number": number, "more": 1}))


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/json ;charset=UTF-8"]
)
def test_the_media_type_may_have_parameters_and_any_case(standing: SharedApi, content_type: str):
    answer = standing.wait_for(standing.api.send("getQueue", QUEUE, headers={"content-type": content_type}))
    assert answer.status_code == 200


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/jsonx", "application/problem+json", "*/*"])
def test_another_media_type_is_refused(standing: SharedApi, content_type: str):
    answer = standing.wait_for(standing.api.send("getQueue", QUEUE, headers={"content-type": content_type}))
    assert code_of(answer) == "unsupported_media_type"


def test_errors_are_reported_in_the_documented_order(standing: SharedApi):
    """Each request has the faults of the one before, except the one that was reported there."""
    api = standing.api
    reader = standing.wait_for(api.token())

    async def codes() -> list[str]:
        wrong = {"content-type": "text/plain"}
        answers = [
            await api.client.post("/v1/nothing", content=b"{"),
            await api.client.get("/v1/createQueue"),
            await api.client.post("/v1/createQueue", content=b"{", headers=wrong),
            await api.send("createQueue", b"{", token=reader, headers=wrong),
            await api.send("createQueue", b"{", token=reader),
            await api.send("createQueue", {"repo": 1}, token=reader),
            await api.post("createQueue", targetBranch="nothing", repo=REPOSITORY | {"name": "no"}, token=reader),
            await api.post("createQueue", targetBranch="nothing", repo=REPOSITORY | {"name": "no"}),
        ]
        return [code_of(answer) for answer in answers]

    assert standing.wait_for(codes()) == [
        "not_found", "method_not_allowed", "missing_token", "unsupported_media_type", "invalid_json",
        "invalid_request", "insufficient_scope", "repository_not_found",
    ]  # fmt: skip
