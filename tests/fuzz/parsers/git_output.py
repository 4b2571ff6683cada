"""What git says, with names that only git would take: every ref, path and commit is understood as it was meant."""

from collections.abc import Sequence

from hypothesis import strategies as st

from mergeyard.adapters.git_cli import contents, history, pushing, version
from mergeyard.adapters.git_cli.contents import Difference
from mergeyard.adapters.git_cli.names import checked_ref, kept, kept_glob, matches, original, readable, refs_in
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import GitTrouble
from mergeyard.service import wording
from tests.fuzz.bending import words
from tests.fuzz.laws import holds_for

NEVER = " ~^:?*[\\\x7f" + "".join(map(chr, range(32)))
ref_letters = st.characters(exclude_characters=NEVER + "/.", codec="utf-8") | st.sampled_from("\x85\u2028\u2029\x1c")
part = st.text(ref_letters.filter(lambda letter: letter not in NEVER), min_size=1, max_size=6)
refs = st.lists(part, min_size=1, max_size=3).map(lambda parts: "/".join(("refs", "heads", *parts)))
shas = st.text("0123456789abcdef", min_size=40, max_size=40).map(Sha)
paths = st.binary(min_size=1, max_size=12).filter(lambda path: b"\0" not in path)
no_text = st.binary(max_size=6).map(lambda raw: b"refs/pull/\xff" + bytes(set(raw) - set(range(33))) + b"/head")


@holds_for(st.dictionaries(refs, shas), st.lists(no_text, max_size=2), st.sampled_from([b"\t", b" ", b" commit "]))
def every_ref_that_git_lists_is_found_under_its_own_name(
    there: dict[str, Sha], others: list[bytes], between: bytes
) -> None:
    lines = [sha.encode() + between + ref.encode() for ref, sha in there.items()]
    strange = [b"1" * 40 + between + ref for ref in others]
    out = b"".join(line + b"\n" for line in (*strange, *lines))
    assert {ref: sha for sha, ref in refs_in(out)} == there


@holds_for(st.lists(st.tuples(st.sampled_from(" +*-t!="), refs), min_size=1))
def every_ref_that_was_pushed_has_one_line(moved: Sequence[tuple[str, str]]) -> None:
    text = "".join(f"{flag}\t{'1' * 40}:{ref}\t[new branch]\n" for flag, ref in moved)
    lines = list(pushing.parsed(f"To /somewhere\n{text}Done\n".encode()))
    assert [line.flag for line in lines] == [flag for flag, _ in moved]
    assert {line.summary for line in lines} == {"[new branch]"}


@holds_for(st.binary(max_size=200))
def whatever_a_push_says_is_read(out: bytes) -> None:
    assert pushing.nothing_moved(list(pushing.parsed(out))) in (True, False)


@holds_for(
    st.lists(st.builds(Difference, paths, st.sampled_from([b"100644", b"000000", b"160000"]), st.just(b"1" * 40)))
)
def every_path_that_differs_is_found(found: list[Difference]) -> None:
    out = b"".join(b":100644 %b %b %b M\0%b\0" % (one.mode, b"0" * 40, one.content, one.path) for one in found)
    assert list(contents.parsed(out)) == found


texts = st.text(max_size=20).filter(lambda text: "\0" not in text)


@holds_for(st.lists(st.tuples(shas, st.lists(shas, max_size=3), shas, texts, texts, texts, texts, texts)))
def every_commit_of_a_log_is_read(commits: list[tuple[Sha, list[Sha], Sha, str, str, str, str, str]]) -> None:
    fields = ((sha, " ".join(parents), *rest) for sha, parents, *rest in commits)
    out = "".join("\0".join(each) + "\0" for each in fields).encode()
    read = list(history.parsed(out))
    assert [(one.sha, list(one.parents), one.message) for one in read] == [(c[0], c[1], c[7]) for c in commits]


@holds_for(refs)
def a_ref_is_kept_under_a_name_that_leads_back(ref: str) -> None:
    try:
        checked_ref(ref)
    except GitTrouble:
        return
    assert original(kept(ref)) == ref
    assert matches("refs/heads/*", ref)
    assert checked_ref(kept(ref))
    assert kept_glob(ref) == kept(ref)


@holds_for(words | refs)
def a_name_is_checked_or_trouble(name: str) -> None:
    try:
        assert checked_ref(name) == name
    except GitTrouble:
        return
    assert name.startswith("refs/")
    assert not set(name) & set(NEVER)


@holds_for(st.binary(max_size=50), words)
def paths_and_versions_are_always_readable(path: bytes, text: str) -> None:
    assert isinstance(readable(path), str)
    assert version.complaint(f"git version {text}") is None or version.complaint(text)


@holds_for(
    st.lists(words | st.sampled_from(["Mergeyard-Pull-Request: ", "\n", "12", "9" * 5_000, "٣"]), max_size=8).map(
        "".join
    )
)
def whose_commit_it_is_can_be_asked_of_any_message(message: str) -> None:
    number = wording.pull_request_of(message)
    assert number is None or 1 <= number < 10**10
