"""JSON is parsed as the contract requires, cheaply and within limits."""

import json
from time import perf_counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct, to_builtins

from mergeyard.api import json_parser, request_schemas, response_schemas
from mergeyard.api.json_parser import LARGE, PIECE, Irregular, decode_members, parse_object
from mergeyard.api.request_schemas import RepoReference
from mergeyard.api.responses import ApiError
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, impacted_targets_from_names
from mergeyard.domain.states import PullRequestState, QueueState
from tests.support.fake_api import PR, QUEUE

MIB = 1024 * 1024


def code(body: bytes) -> str:
    with pytest.raises(ApiError) as refused:
        parse_object(body)
    return refused.value.code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{} {}",
        b"{}x",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-16-le"),
        b'{"a":' + b"1" * 5000 + b"}",
        b'{"a":-' + b"1" * 1001 + b"}",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":"\n"}',
        b'{"a":01}',
        b"]" * 100,
    ],
)
def test_invalid_json_is_refused(body: bytes):
    assert code(body) == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"a"', b"true"])
def test_json_that_is_not_an_object_is_refused(body: bytes):
    assert code(body) == "invalid_request"


@pytest.mark.parametrize("body", [b'{"a":1,"a":1}', b'{"a":{"b":1,"c":2,"b":3}}', b'{"a":1,"\\u0061":1}'])
def test_a_duplicate_key_is_refused(body: bytes):
    assert code(body) == "duplicate_key"


def test_the_duplicate_key_is_named():
    with pytest.raises(ApiError, match="'pr'"):
        parse_object(b'{"a":1,"pr":1,"pr":2}')


def test_depth_of_32_is_taken_and_33_is_refused():
    def nested(depth: int) -> bytes:
        return b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)

    assert parse_object(nested(32))
    assert code(nested(33)) == "json_too_deep"


def test_brackets_in_strings_nest_nothing():
    assert parse_object(json.dumps({"a": "[" * 100, "b": '\\"{' * 100}).encode())


def test_10000_containers_are_taken_and_one_more_is_refused():
    def containers(count: int) -> bytes:
        return b'{"a":[' + b",".join([b"[]"] * (count - 2)) + b"]}"

    assert parse_object(containers(10_000))
    assert code(containers(10_001)) == "json_too_complex"


def test_100000_members_are_taken_and_one_more_is_refused():
    def members(count: int) -> bytes:
        return b"{" + b",".join(b'"%d":1' % at for at in range(count)) + b"}"

    assert len(parse_object(members(100_000))) == 100_000
    assert code(members(100_001)) == "json_too_complex"


@pytest.mark.parametrize(
    "body", [b'{"a":"\\ud800"}', b'{"a":["\\udfff x"]}', b'{"\\uD834":1}', b'{"a":"\\u0000"}', b'{"\\u0000":1}']
)
def test_a_lone_surrogate_or_a_nul_is_no_text(body: bytes):
    assert code(body) == "invalid_string"


def test_a_pair_of_surrogates_and_an_escaped_backslash_are_text():
    assert parse_object(b'{"a":"\\ud83d\\ude00","b":"\\\\u0000"}') == {"a": "😀", "b": "\\u0000"}


def test_many_digits_in_a_string_are_no_number():
    assert parse_object(b'{"a":"' + b"1" * 5000 + b'"}')


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"[" * 20 * MIB, "json_too_deep"),
        (b'{"a":' * 4 * MIB, "json_too_deep"),
        (b"[" + b"{}," * 7 * MIB, "json_too_complex"),
        (b'"' + b"\\" * 20 * MIB, "invalid_json"),
        (b"[" * 33 + b'"' + b"a" * 20 * MIB, "json_too_deep"),
        (b"1" * 20 * MIB, "invalid_json"),
        (b"[" + b"[]," * 40 + b'"' + b'\\"' * 8 * MIB, "invalid_json"),
        (b"[" + b'"%b",' % (b"1" * 1000) * 20_000, "invalid_json"),
    ],
    ids=["lists", "objects", "many", "string without end", "deep string", "digits", "quotes", "digits in strings"],
)
def test_a_json_bomb_of_20_mib_is_refused_quickly(body: bytes, expected: str):
    started_at = perf_counter()
    assert code(body) == expected
    assert perf_counter() - started_at < 5


def test_a_flat_list_has_no_cap():
    body = b'{"impactedTargets":[' + b'"//some[x]:target",' * MIB + b'"//last"]}'
    assert len(parse_object(body)["impactedTargets"]) == MIB + 1


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(texts, values, max_size=4))
def test_encoded_json_is_decoded_to_the_same_value(value: dict[str, Any]):
    assert parse_object(json.dumps(value).encode()) == value
    assert parse_object(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize("before", range(-6, 2))
def test_problems_at_the_cut_of_a_large_body_are_found(before: int):
    start = PIECE + before - len('{"a":"')
    assert code(b'{"a":"' + b"a" * start + b'\\u0000"}') == "invalid_string"
    assert code(b'{"a":"' + b"a" * (start - 600) + b'","b":' + b"1" * 1001 + b"}") == "invalid_json"


def test_a_large_body_is_read_like_a_small_one():
    value = {"names": [f"name {number}" for number in range(50_000)], "none": [], "deep": {"a": [1, {"b": None}]}}
    body = json.dumps(value, indent=1).encode()
    assert len(body) > LARGE
    assert parse_object(body) == value
    assert code(body[:-1]) == "invalid_json"
    assert code(body[:-1] + b',"none":1}') == "duplicate_key"
    assert code(body[:-1] + b',"more":{"a":1,"a":2}}') == "duplicate_key"
    assert code(body[:-1] + b',"more":NaN}') == "invalid_json"


DECODER = json.JSONDecoder()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
BLANKS = st.text(" \t\n\r", max_size=3)


@given(st.dictionaries(st.text(), VALUES, min_size=1), BLANKS, BLANKS)
def test_the_incremental_scan_finds_the_same_members(value: dict[str, Any], before: str, between: str):
    text = before + json.dumps(value, separators=(f"{between},{before}", f"{before}:{between}")) + between
    assert dict(decode_members(DECODER, text)) == value


@given(st.text('{}[]:,"ab1 \n'))
def test_text_that_is_not_an_object_is_never_decoded_as_one(text: str):
    try:
        found = decode_members(DECODER, text)
    except Irregular:
        return
    assert dict(found) == json.loads(text)


def test_a_duplicate_member_is_found_twice():
    assert decode_members(DECODER, '{"a": 1, "a": [2, 3]}') == [("a", 1), ("a", [2, 3])]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a":1}x', '{"a":[1,]}', '{"a":1,}', "{1:2}", '{"a" 1}', '{"a":[1'])
def test_invalid_json_is_left_to_the_strict_parser(text: str):
    with pytest.raises(Irregular):
        decode_members(DECODER, text)


SHA = "0123456789abcdef0123456789abcdef01234567"


def refusal(kind: type[Struct], members: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ApiError) as refused:
        json_parser.to_request(kind, members)
    return refused.value.code, refused.value.errors[0].pointer


def targets(value: Any) -> Any:
    return json_parser.to_request(
        request_schemas.SetImpactedTargets, PR | {"impactedTargets": value}
    ).impacted_targets.impacted_targets


# Numbers


@pytest.mark.parametrize("number", [12, "12", 12.0, "012"], ids=repr)
def test_a_number_can_be_digits_or_a_whole_float(number: Any):
    assert json_parser.to_request(request_schemas.CancelPullRequest, QUEUE | {"pr": {"number": number}}).pr.number == 12


@pytest.mark.parametrize(
    "number",
    [1.5, True, 0, -1, "0", "-1", "1.0", "", "x", "١٢", 2**31, str(2**31), "9" * 5000, 1e300, None, [], {}],
    ids=lambda number: repr(number)[:9],
)
def test_an_invalid_pull_request_number_is_refused(number: Any):
    pr = {"pr": {"number": number}}
    assert refusal(request_schemas.CancelPullRequest, QUEUE | pr) == ("invalid_request", "/pr/number")


@pytest.mark.parametrize(
    ("given", "value"), [(0, 0), (255, 255), ("URGENT", 0), ("high", 10), ("Medium", 100), ("low", 200)]
)
def test_a_priority_is_a_number_or_a_name_in_any_case(given: Any, value: int):
    assert json_parser.to_request(request_schemas.SubmitPullRequest, PR | {"priority": given}).priority == value


@pytest.mark.parametrize("priority", [-1, 256, "highest", "33", True, None, 1.5])
def test_other_priorities_are_refused(priority: Any):
    assert refusal(request_schemas.SubmitPullRequest, PR | {"priority": priority}) == ("invalid_request", "/priority")


# Members


def test_unknown_members_are_ignored():
    request: dict[str, Any] = PR | {"unknown": {"deep": []}, "repo": QUEUE["repo"] | {"id": 7}}
    assert json_parser.to_request(request_schemas.CancelPullRequest, request).key == QueueKey(
        Repo("git.local", "acme", "app"), "main"
    )


def test_members_that_were_not_given_are_distinguished():
    request = json_parser.to_request(request_schemas.SubmitPullRequest, PR | {"noBatch": False})
    assert (request.no_batch, request.force, request.priority) == (False, UNSET, UNSET)


INVALID_MEMBERS: list[tuple[dict[str, Any], str]] = [
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


@pytest.mark.parametrize(("members", "pointer"), INVALID_MEMBERS)
def test_a_missing_null_or_mistyped_member_is_named_by_its_pointer(members: dict[str, Any], pointer: str):
    assert refusal(request_schemas.SubmitPullRequest, members) == ("invalid_request", pointer)


def test_a_message_is_readable():
    with pytest.raises(ApiError, match="`/pr/number`: expected an integer, got true or false"):
        json_parser.to_request(request_schemas.CancelPullRequest, QUEUE | {"pr": {"number": True}})


@pytest.mark.parametrize(
    ("part", "name"),
    [("owner", ".."), ("name", "-x"), ("name", "a/b"), ("owner", ""), ("owner", "a/../b"), ("owner", "a//b")],
)
def test_an_invalid_repository_name_is_refused(part: str, name: str):
    members = QUEUE | {"repo": QUEUE["repo"] | {part: name}}
    assert refusal(request_schemas.GetQueue, members) == ("invalid_repo", f"/repo/{part}")


def test_a_host_is_lower_cased_and_other_names_are_not():
    request = json_parser.to_request(
        request_schemas.GetQueue, QUEUE | {"repo": {"host": "Git.Local", "owner": "Acme", "name": "App"}}
    )
    assert request.key.repo == Repo("git.local", "Acme", "App")


def test_a_repository_can_be_in_nested_groups():
    repo = QUEUE["repo"] | {"owner": "acme/tools", "name": "app"}
    request = json_parser.to_request(request_schemas.GetQueue, QUEUE | {"repo": repo})
    assert (request.key.repo.owner, request.key.repo.name) == ("acme/tools", "app")


@pytest.mark.parametrize("branch", ["", "-x", "a..b", "mergeyard/x", "HEAD", "a" * 256])
def test_an_invalid_target_branch_is_refused(branch: str):
    assert refusal(request_schemas.GetQueue, QUEUE | {"targetBranch": branch}) == ("invalid_branch", "/targetBranch")


# Impacted targets


@pytest.mark.parametrize("value", ["ALL", "all", "IMPACTS_ALL", "Impacts_All", ["//a", "ALL"]])
def test_all_has_several_spellings(value: Any):
    assert targets(value) == ALL_TARGETS


def test_targets_are_a_set():
    assert targets(["b", "a", "b"]) == impacted_targets_from_names("a", "b")
    assert targets([]) == NO_TARGETS
    assert targets(["é" * 512]) == impacted_targets_from_names("é" * 512)


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
    request = PR | {"impactedTargets": value}
    assert refusal(request_schemas.SetImpactedTargets, request) == ("invalid_request", f"/impactedTargets{pointer}")


def test_a_sha_is_lower_cased():
    request: dict[str, Any] = QUEUE | {"pr": {"number": 1, "sha": SHA.upper()}, "impactedTargets": []}
    assert json_parser.to_request(request_schemas.SetImpactedTargets, request).pr.sha == SHA


# Settings


def changes(**settings: Any) -> Any:
    return json_parser.to_request(request_schemas.UpdateQueue, QUEUE | settings)


def test_only_the_settings_that_were_given_change():
    assert changes().given_settings == {}
    assert changes(mode="PARALLEL", batchingMinSize=7).given_settings == {"mode": Mode.PARALLEL, "batching_min_size": 7}


def test_every_default_is_taken_as_a_setting():
    shown = response_schemas.build_queue(
        Config(), state=QueueState.RUNNING, branch="main", repo=RepoReference("h", "o", "n")
    )
    settings = to_builtins(shown)
    for member in ("state", "branch", "repo"):
        del settings[member]
    assert Config(**json_parser.to_request(request_schemas.CreateQueue, QUEUE | settings).given_settings) == Config()  # pyright: ignore


def test_a_state_is_taken_in_any_case():
    assert changes(state="paused").state == "PAUSED"


def test_required_statuses_can_be_named_dropped_or_left():
    assert changes(requiredStatuses=["unit"]).given_settings == {"required_statuses": ("unit",)}
    assert changes(requiredStatuses=None).given_settings == {"required_statuses": None}
    assert changes(deleteRequiredStatuses=True).given_settings == {"required_statuses": None}
    assert changes(deleteRequiredStatuses=False).given_settings == {}


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
    assert refusal(request_schemas.UpdateQueue, QUEUE | {setting: value}) == ("invalid_request", pointer)


def test_naming_and_dropping_required_statuses_at_once_is_refused():
    both = {"requiredStatuses": ["unit"], "deleteRequiredStatuses": True}
    assert refusal(request_schemas.UpdateQueue, QUEUE | both)[0] == "invalid_request"


@pytest.mark.parametrize("member", ["concurency", "spekulation", "pr", "batching_min_size", "a/b~c"])
def test_a_member_that_is_no_setting_is_refused(member: str):
    pointer = "/" + member.replace("~", "~0").replace("/", "~1")
    for kind in (request_schemas.CreateQueue, request_schemas.UpdateQueue):
        assert refusal(kind, QUEUE | {member: 1}) == ("unknown_field", pointer)


@pytest.mark.parametrize("member", ["state", "deleteRequiredStatuses"])
def test_a_new_queue_takes_settings_only(member: str):
    assert refusal(request_schemas.CreateQueue, QUEUE | {member: "PAUSED"}) == ("unknown_field", f"/{member}")


def test_every_setting_has_a_meaning():
    assert tuple(request_schemas.SETTING_DESCRIPTIONS) == request_schemas.SETTING_NAMES


# Lists


def test_a_list_is_restricted_by_state_and_time():
    request = QUEUE | {"state": "Merged", "since": "2026-11-14T10:16:02Z", "take": 100}
    request = json_parser.to_request(request_schemas.ListPullRequests, request)
    assert (request.state, request.since, request.until, request.take) == (
        PullRequestState.MERGED,
        1794651362000,
        UNSET,
        100,
    )


@pytest.mark.parametrize(
    ("member", "value"),
    [("take", 0), ("take", 101), ("since", "yesterday"), ("until", 5), ("state", "gone"), ("cursor", "")],
)
def test_a_list_is_restricted_by_nothing_else(member: str, value: Any):
    assert refusal(request_schemas.ListPullRequests, QUEUE | {member: value}) == ("invalid_request", f"/{member}")


def test_at_most_50_pull_requests_are_read_at_once():
    prs = [{"number": str(at)} for at in range(1, 51)]
    assert json_parser.to_request(request_schemas.GetSubmittedPullRequests, QUEUE | {"prs": prs}).prs[49].number == 50
    assert refusal(request_schemas.GetSubmittedPullRequests, QUEUE | {"prs": [*prs, prs[0]]}) == (
        "invalid_request",
        "/prs",
    )
    assert refusal(request_schemas.GetSubmittedPullRequests, QUEUE | {"prs": [{"number": "x"}]})[1] == "/prs/0/number"


def test_a_pull_request_is_named_by_number_or_branch():
    by_branch = json_parser.to_request(request_schemas.GetSubmittedPullRequest, QUEUE | {"pr": {"branch": "fix"}})
    assert (by_branch.pr.number, by_branch.pr.branch) == (UNSET, "fix")
    assert refusal(request_schemas.GetSubmittedPullRequest, QUEUE | {"pr": {}}) == ("invalid_request", "/pr/number")
