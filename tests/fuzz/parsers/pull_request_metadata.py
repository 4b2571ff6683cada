"""Metadata of a pull request on a plain Git host; anyone with push access can write it."""

from hypothesis import strategies as st

from mergeyard.adapters.host_plain.pull_requests import (
    MAX_METADATA_BYTES,
    InvalidMetadata,
    PullRequestMetadata,
    StoredState,
    decode_metadata,
    encode_metadata,
    is_relevant_ref,
    pull_request_number_of,
)
from tests.fuzz.mutations import mutated_json, words
from tests.fuzz.properties import holds_for, outcome

GOOD = {"title": "A change", "author": "Ada", "base": "main", "branch": "topic", "draft": False, "state": "open"}
metas = st.builds(
    PullRequestMetadata,
    title=words,
    author=words,
    base=words,
    branch=words,
    draft=st.booleans(),
    state=st.sampled_from(StoredState),
)


@holds_for(mutated_json(GOOD, GOOD | {"labels": ["x"], "more": {"than": "we know"}}))
def metadata_is_decoded_or_invalid(raw: bytes) -> None:
    meta = outcome(lambda: decode_metadata(raw), InvalidMetadata)
    assert (
        isinstance(meta, InvalidMetadata)
        or len(raw) > MAX_METADATA_BYTES
        or decode_metadata(encode_metadata(meta, raw)) == meta
    )


@holds_for(metas)
def encoded_metadata_is_decoded_unchanged(meta: PullRequestMetadata) -> None:
    raw = outcome(lambda: encode_metadata(meta), InvalidMetadata)
    assert isinstance(raw, InvalidMetadata) or decode_metadata(raw) == meta


@holds_for(mutated_json(GOOD | {"ours": 1, "theirs": [1, {"a": None}]}), metas)
def unknown_members_are_kept(raw: bytes, meta: PullRequestMetadata) -> None:
    before = outcome(lambda: decode_metadata(raw), InvalidMetadata)
    after = (
        before
        if isinstance(before, InvalidMetadata)
        else outcome(lambda: decode_metadata(encode_metadata(meta, raw)), InvalidMetadata)
    )
    assert isinstance(after, InvalidMetadata) or after == meta


@holds_for(
    words.map(lambda word: f"refs/pull/{word}/head") | st.integers().map(lambda n: f"refs/pull/{n}/meta") | words
)
def ref_has_a_valid_number_or_none(ref: str) -> None:
    number = pull_request_number_of(ref)
    assert number is None or 1 <= number < 2**31
    assert is_relevant_ref(ref) in (True, False)
