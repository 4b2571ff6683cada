"""The data of a pull request on a plain host, which anybody who may push can have written."""

from hypothesis import strategies as st

from mergeyard.adapters.host_plain.meta import LARGEST, BadMeta, Meta, PullState, parsed, written
from mergeyard.adapters.host_plain.refs import number_of, tells
from tests.fuzz.bending import bent_json, words
from tests.fuzz.effort import outcome
from tests.fuzz.laws import holds_for

GOOD = {"title": "A change", "author": "Ada", "base": "main", "branch": "topic", "draft": False, "state": "open"}
metas = st.builds(
    Meta, title=words, author=words, base=words, branch=words, draft=st.booleans(), state=st.sampled_from(PullState)
)


@holds_for(bent_json(GOOD, GOOD | {"labels": ["x"], "more": {"than": "we know"}}))
def data_is_read_or_it_is_bad(raw: bytes) -> None:
    meta = outcome(lambda: parsed(raw), BadMeta)
    assert isinstance(meta, BadMeta) or len(raw) > LARGEST or parsed(written(meta, raw)) == meta


@holds_for(metas)
def what_we_write_we_read_again(meta: Meta) -> None:
    raw = outcome(lambda: written(meta), BadMeta)
    assert isinstance(raw, BadMeta) or parsed(raw) == meta


@holds_for(bent_json(GOOD | {"ours": 1, "theirs": [1, {"a": None}]}), metas)
def what_others_wrote_beside_it_stays(raw: bytes, meta: Meta) -> None:
    before = outcome(lambda: parsed(raw), BadMeta)
    after = before if isinstance(before, BadMeta) else outcome(lambda: parsed(written(meta, raw)), BadMeta)
    assert isinstance(after, BadMeta) or after == meta


@holds_for(
    words.map(lambda word: f"refs/pull/{word}/head") | st.integers().map(lambda n: f"refs/pull/{n}/meta") | words
)
def a_ref_has_a_number_that_the_api_could_name_or_none(ref: str) -> None:
    number = number_of(ref)
    assert number is None or 1 <= number < 2**31
    assert tells(ref) in (True, False)
