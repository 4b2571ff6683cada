"""Bodies become requests: tolerant where the contract is, with a pointer in each refusal, and at little cost."""

import json
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct

from mergeyard.api import request_schemas, validation
from mergeyard.api.presenting import encode, present_queue
from mergeyard.api.request_body import MAX_BODY_BYTES
from mergeyard.api.responses import ApiError
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import QueueKey, Repo
from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, impacted_targets_from_names
from mergeyard.domain.states import PullRequestState
from mergeyard.service.views import QueueView
from tests.support.builders import a_plain_queue
from tests.support.fake_api import PR, QUEUE

SUBMIT = request_schemas.SubmitPullRequest
UPLOAD = request_schemas.SetImpactedTargets


def with_member(name: str, value: bytes, members: dict[str, Any] = PR) -> bytes:
    """A request with one more member; `value` is its JSON."""
    return json.dumps(members).encode()[:-1] + f', "{name}": '.encode() + value + b"}"


def decode(body: bytes, kind: type[Struct] = SUBMIT) -> Any:
    return validation.decode_request(kind, body)


def digest(body: bytes, kind: type[Struct] = SUBMIT, path: str = "/v1/submitPullRequest") -> bytes:
    return validation.decode_request_with_digest(kind, path, body)[1]


def code(body: bytes, kind: type[Struct] = SUBMIT) -> str:
    """The code of the refusal, which is the same with and without a digest."""
    codes = set[str]()
    for read in (decode, digest):
        with pytest.raises(ApiError) as refused:
            read(body, kind)
        codes.add(refused.value.code)
    (only,) = codes
    return only


def pointer(body: bytes, kind: type[Struct] = SUBMIT) -> str:
    with pytest.raises(ApiError) as refused:
        decode(body, kind)
    return refused.value.errors[0].pointer


# JSON


NO_JSON = {
    "empty": b"",
    "blank": b" ",
    "two objects": b"{} {}",
    "trailing bytes": b"{}x",
    "NaN": with_member("more", b"NaN"),
    "Infinity": with_member("more", b"Infinity"),
    "-Infinity": with_member("force", b"-Infinity"),
    "invalid UTF-8": with_member("force", b'"\xff"'),
    "invalid UTF-8 in an unknown member": with_member("more", b'"\xff"'),
    "byte order mark": b"\xef\xbb\xbf" + json.dumps(PR).encode(),
    "UTF-16": json.dumps(PR).encode("utf-16"),
    "UTF-16 without a mark": json.dumps(PR).encode("utf-16-le"),
    "single quotes": b"{'a':1}",
    "trailing comma": b'{"a":1,}',
    "line break in a string": with_member("more", b'"\n"'),
    "leading zero": with_member("more", b"01"),
    "truncated": json.dumps(PR).encode()[:-1],
    "no JSON": b"]" * 100,
}


@pytest.mark.parametrize("name", NO_JSON)
def test_invalid_json_is_refused(name: str):
    assert code(NO_JSON[name]) == "invalid_json"


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"a"', b"true"])
def test_json_that_is_not_an_object_is_refused(body: bytes):
    assert code(body) == "invalid_request"


@pytest.mark.parametrize("text", [r"\ud800", r"\udfff x", r"\ud834 and more", r"\ud800\ud800", r"\ud800\u0041"])
@pytest.mark.parametrize(
    ("member", "form"),
    [("targetBranch", '"{}"'), ("more", '["{}"]'), ("pr", '{{"number": 1, "{}": 1}}'), ("more", '{{"{}": 1}}')],
)
def test_a_lone_surrogate_is_invalid_json(text: str, member: str, form: str):
    assert code(with_member(member, form.format(text).encode())) == "invalid_json"


def test_a_pair_of_surrogates_is_one_character():
    assert decode(with_member("targetBranch", rb'"\ud83d\ude00"')).target_branch == "😀"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("targetBranch", rb'"a\u0000"'),
        ("pr", rb'{"number": 1, "sha": "\u0000"}'),
        ("pr", rb'{"number": 1, "\u0000": 1}'),
    ],
    ids=["text", "nested", "name"],
)
def test_a_nul_in_a_known_member_is_refused(member: str, value: bytes):
    body = with_member(member, value)
    assert (code(body), pointer(body)) == ("invalid_request", f"/{member}")


def test_a_nul_in_a_target_is_refused():
    assert code(with_member("impactedTargets", rb'["a", "\u0000"]'), UPLOAD) == "invalid_request"


def test_an_escaped_backslash_before_u0000_is_no_nul():
    body = with_member("impactedTargets", rb'["\\u0000"]')
    assert decode(body, UPLOAD).impacted_targets.impacted_targets == impacted_targets_from_names("\\u0000")


def test_the_last_of_duplicate_members_wins():
    assert decode(with_member("pr", b'{"number": 7}')).pr.number == 7
    assert decode(with_member("pr", b'{"number": 7, "number": 8}')).pr.number == 8
    assert decode(with_member(r"\u0070r", b'{"number": 9}')).pr.number == 9


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["lists", "objects"])
@pytest.mark.parametrize("member", ["more", "pr", "impactedTargets"])
def test_nesting_is_accepted_or_refused_at_any_depth(member: str, opening: bytes, closing: bytes):
    """The decoder's limit depends on how many frames Python has already entered, so each depth near it is tried."""
    known = {"pr": {"invalid_request"}, "impactedTargets": {"invalid_request"}, "more": {"accepted"}}[member]
    depths = [*range(900, 1010), 5000, 60_000]
    nested = (with_member(member, opening * at + b"1" + closing * at, PR | {"impactedTargets": []}) for at in depths)
    outcomes = [outcome(body) for body in nested]
    assert set(outcomes) == known | {"invalid_json"}
    assert outcomes[-1] == "invalid_json"


def outcome(body: bytes) -> str:
    try:
        digest(body, UPLOAD)
    except ApiError as refused:
        return refused.code
    return "accepted"


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(texts, values, max_size=4))
def test_unknown_members_are_ignored_whatever_they_are(unknown: dict[str, Any]):
    for ascii_only in (True, False):
        assert decode(json.dumps(unknown | PR, ensure_ascii=ascii_only).encode()) == decode(json.dumps(PR).encode())


# Size and cost


def test_a_known_member_over_64_kib_is_refused():
    quotes = 2
    assert pointer(with_member("targetBranch", b'"%b"' % (b"a" * (64 * 1024 - quotes)))) == "/targetBranch"
    body = with_member("targetBranch", b'"%b"' % (b"a" * (64 * 1024 - quotes + 1)))
    assert (code(body), pointer(body)) == ("invalid_request", "/targetBranch")
    with pytest.raises(ApiError, match="at most 65,536 bytes"):
        decode(body)


def test_targets_have_no_such_limit():
    names = [f"//some/target:{number}" for number in range(100_000)]
    targets = decode(with_member("impactedTargets", json.dumps(names).encode()), UPLOAD).impacted_targets
    assert targets.impacted_targets == impacted_targets_from_names(*names)


FULL = MAX_BODY_BYTES - 500
BOMBS: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[[]" + b",[]" * (FULL // 3 - 3) + b"]",
    "objects": lambda: b"[{}" + b",{}" * (FULL // 3 - 3) + b"]",
    "members": lambda: b"{" + b",".join([b'"a":1'] * (FULL // 6 - 3)) + b"}",
    "numbers": lambda: b"[1" + b",1" * (FULL // 2 - 3) + b"]",
    "digits": lambda: b"1" * FULL,
    "an exponent": lambda: b"1e" + b"1" * (FULL - 2),
    "a string": lambda: b'"%b"' % (b"a" * (FULL - 2)),
    "escapes": lambda: b'"%b"' % (b"\\n" * (FULL // 2 - 2)),
    "pairs of surrogates": lambda: b'"%b"' % (b"\\ud83d\\ude00" * (FULL // 12 - 2)),
}
INVALID_BOMBS: dict[str, Callable[[], bytes]] = {
    "open lists": lambda: b"[" * MAX_BODY_BYTES,
    "open objects": lambda: b'{"a":' * (MAX_BODY_BYTES // 5),
    "string without end": lambda: b'{"a":"' + b"\\" * (MAX_BODY_BYTES - 6),
    "digits": lambda: b"1" * MAX_BODY_BYTES,
    "nothing": lambda: b" " * MAX_BODY_BYTES,
}


@contextmanager
def little_cost() -> Generator[None]:
    """At most 3 seconds of processor time, and no more memory than two copies of the body."""
    started_at = process_time()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 2.5 * MAX_BODY_BYTES
    finally:
        tracemalloc.stop()
    assert process_time() - started_at < 3


@pytest.mark.parametrize("name", BOMBS)
def test_an_unknown_member_of_20_mib_is_skipped_at_little_cost(name: str):
    body = with_member("more", BOMBS[name]())
    assert FULL - 100 < len(body) <= MAX_BODY_BYTES
    with little_cost():
        assert decode(body).pr.number == 12


@pytest.mark.parametrize("name", BOMBS)
def test_a_known_member_of_20_mib_is_refused_at_little_cost(name: str):
    body = with_member("pr", BOMBS[name]())
    with little_cost():
        assert pointer(body) == "/pr"


@pytest.mark.parametrize("name", ["lists", "objects", "members", "numbers", "digits", "an exponent"])
def test_targets_that_are_not_text_are_refused_at_little_cost(name: str):
    body = with_member("impactedTargets", BOMBS[name]())
    with little_cost():
        assert pointer(body, UPLOAD).startswith("/impactedTargets")


@pytest.mark.parametrize("name", INVALID_BOMBS)
def test_invalid_json_of_20_mib_is_refused_at_little_cost(name: str):
    body = INVALID_BOMBS[name]()
    with little_cost(), pytest.raises(ApiError):
        decode(body)


# Digests


def test_the_digest_is_independent_of_white_space_and_of_the_order_of_members():
    first = b'{"pr":{"number":1,"sha":"x"},"more":{"a":[1,2]},' + json.dumps(QUEUE).encode()[1:]
    second = json.dumps(QUEUE, indent=3).encode()[:-1] + b',"more":{ "a" : [1 , 2]},"pr":{"sha":"x","number": 1}}'
    first, second = first.replace(b'"x"', b'"%b"' % SHA.encode()), second.replace(b'"x"', b'"%b"' % SHA.encode())
    assert digest(first) == digest(second)


@pytest.mark.parametrize(
    "other",
    [{"pr": {"number": 13}}, {"force": True}, {"more": 2}, {"more": None}, {"another": 1}, {"targetBranch": "next"}],
    ids=repr,
)
def test_every_member_changes_the_digest(other: dict[str, Any]):
    request = PR | {"more": 1}
    assert digest(json.dumps(request).encode()) != digest(json.dumps(request | other).encode())


def test_the_path_changes_the_digest():
    body = json.dumps(PR).encode()
    assert digest(body) != digest(body, path="/v1/cancelPullRequest")


def test_members_cannot_be_confused_with_each_other():
    """The digest separates a name from its value, and a member from the next."""
    assert digest(with_member("a", b'1,"b":2')) != digest(with_member("a", b'"1,b:2"'))
    assert digest(with_member("ab", b"1")) != digest(with_member("a", b'"b1"'))


SHA = "0123456789abcdef0123456789abcdef01234567"


def request_from(kind: type[Struct], members: dict[str, Any]) -> Any:
    return decode(json.dumps(members).encode(), kind)


def refusal(kind: type[Struct], members: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(ApiError) as refused:
        request_from(kind, members)
    return refused.value.code, refused.value.errors[0].pointer


def targets(value: Any) -> Any:
    return request_from(
        request_schemas.SetImpactedTargets, PR | {"impactedTargets": value}
    ).impacted_targets.impacted_targets


# Numbers


@pytest.mark.parametrize("number", [12, "12", 12.0, "012"], ids=repr)
def test_a_number_can_be_digits_or_a_whole_float(number: Any):
    assert request_from(request_schemas.CancelPullRequest, QUEUE | {"pr": {"number": number}}).pr.number == 12


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
    assert request_from(request_schemas.SubmitPullRequest, PR | {"priority": given}).priority == value


@pytest.mark.parametrize("priority", [-1, 256, "highest", "33", True, 1.5, "", []])
def test_other_priorities_are_refused(priority: Any):
    assert refusal(request_schemas.SubmitPullRequest, PR | {"priority": priority}) == ("invalid_request", "/priority")


# Members


def test_unknown_members_are_ignored():
    request: dict[str, Any] = PR | {"unknown": {"deep": []}, "repo": QUEUE["repo"] | {"id": 7}}
    assert request_from(request_schemas.CancelPullRequest, request).key == QueueKey(
        Repo("git.local", "acme", "app"), "main"
    )


def test_a_priority_of_null_is_no_priority():
    assert request_from(request_schemas.SubmitPullRequest, PR | {"priority": None}).priority is None


def test_members_that_were_not_given_are_distinguished():
    request = request_from(request_schemas.SubmitPullRequest, PR | {"noBatch": False})
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
        request_from(request_schemas.CancelPullRequest, QUEUE | {"pr": {"number": True}})


@pytest.mark.parametrize(
    ("part", "name"),
    [("owner", ".."), ("name", "-x"), ("name", "a/b"), ("owner", ""), ("owner", "a/../b"), ("owner", "a//b")],
)
def test_an_invalid_repository_name_is_refused(part: str, name: str):
    members = QUEUE | {"repo": QUEUE["repo"] | {part: name}}
    assert refusal(request_schemas.GetQueue, members) == ("invalid_repo", f"/repo/{part}")


def test_a_host_is_lower_cased_and_other_names_are_not():
    request = request_from(
        request_schemas.GetQueue, QUEUE | {"repo": {"host": "Git.Local", "owner": "Acme", "name": "App"}}
    )
    assert request.key.repo == Repo("git.local", "Acme", "App")


def test_a_repository_can_be_in_nested_groups():
    repo = QUEUE["repo"] | {"owner": "acme/tools", "name": "app"}
    request = request_from(request_schemas.GetQueue, QUEUE | {"repo": repo})
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
    assert targets([]) == targets([""]) == NO_TARGETS
    assert targets(["a", "", "b"]) == impacted_targets_from_names("a", "b")
    assert targets(["é" * 512]) == impacted_targets_from_names("é" * 512)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ("some", ""),
        (None, ""),
        ({}, ""),
        (7, ""),
        (["a", 7], "/1"),
        ([None], "/0"),
        (["é" * 513], "/0"),
    ],
)
def test_other_targets_are_refused(value: Any, pointer: str):
    request = PR | {"impactedTargets": value}
    assert refusal(request_schemas.SetImpactedTargets, request) == ("invalid_request", f"/impactedTargets{pointer}")


def test_a_sha_is_lower_cased():
    request: dict[str, Any] = QUEUE | {"pr": {"number": 1, "sha": SHA.upper()}, "impactedTargets": []}
    assert request_from(request_schemas.SetImpactedTargets, request).pr.sha == SHA


# Settings


def changes(**settings: Any) -> Any:
    return request_from(request_schemas.UpdateQueue, QUEUE | settings)


def test_only_the_settings_that_were_given_change():
    assert changes().given_settings == {}
    assert changes(mode="PARALLEL", batchingMinSize=7).given_settings == {"mode": Mode.PARALLEL, "batching_min_size": 7}


def test_every_default_is_taken_as_a_setting():
    view = QueueView(key=QueueKey(Repo("h", "o", "n"), "main"), queue=a_plain_queue())
    settings = json.loads(encode(present_queue(view)))
    for member in ("state", "stateReason", "branch", "repo"):
        del settings[member]
    assert Config(**request_from(request_schemas.CreateQueue, QUEUE | settings).given_settings) == Config()


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


@pytest.mark.parametrize("member", ["concurency", "spekulation", "prs", "batching_min_size", "a/b~c"])
def test_a_member_that_is_no_setting_is_refused(member: str):
    pointer = "/" + member.replace("~", "~0").replace("/", "~1")
    for kind in (request_schemas.CreateQueue, request_schemas.UpdateQueue):
        assert refusal(kind, QUEUE | {member: 1}) == ("unknown_field", pointer)


def test_the_member_pr_that_clients_send_with_every_request_is_no_setting_and_is_ignored():
    assert changes(pr={"number": "x"}).given_settings == {}


@pytest.mark.parametrize("member", ["state", "deleteRequiredStatuses"])
def test_a_new_queue_takes_settings_only(member: str):
    assert refusal(request_schemas.CreateQueue, QUEUE | {member: "PAUSED"}) == ("unknown_field", f"/{member}")


def test_every_setting_has_a_meaning():
    assert tuple(request_schemas.SETTING_DESCRIPTIONS) == request_schemas.SETTING_NAMES


# Lists


def test_a_list_is_restricted_by_state_and_time():
    request = QUEUE | {"state": "Merged", "since": "2026-11-14T10:16:02Z", "take": 100}
    request = request_from(request_schemas.ListPullRequests, request)
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
    assert request_from(request_schemas.GetSubmittedPullRequests, QUEUE | {"prs": prs}).prs[49].number == 50
    assert refusal(request_schemas.GetSubmittedPullRequests, QUEUE | {"prs": [*prs, prs[0]]}) == (
        "invalid_request",
        "/prs",
    )
    assert refusal(request_schemas.GetSubmittedPullRequests, QUEUE | {"prs": [{"number": "x"}]})[1] == "/prs/0/number"


def test_a_pull_request_is_named_by_number_or_branch():
    by_branch = request_from(request_schemas.GetSubmittedPullRequest, QUEUE | {"pr": {"branch": "fix"}})
    assert (by_branch.pr.number, by_branch.pr.branch) == (UNSET, "fix")
    assert refusal(request_schemas.GetSubmittedPullRequest, QUEUE | {"pr": {}}) == ("invalid_request", "/pr/number")
