"""Output of git with unusual names: every ref, path and commit is parsed correctly."""

from collections.abc import Sequence

from hypothesis import strategies as st

from mergeyard.adapters.git_cli import contents, history, process, remote
from mergeyard.adapters.git_cli.contents import Difference
from mergeyard.adapters.git_cli.remote import (
    from_mirror_ref,
    matches_pattern,
    parse_refs,
    to_display_path,
    to_mirror_glob,
    to_mirror_ref,
    validate_ref,
)
from mergeyard.domain.ids import Sha
from mergeyard.ports.git import GitError, Signature
from mergeyard.service import git_names
from tests.fuzz.mutations import words
from tests.fuzz.properties import holds_for

FORBIDDEN = " ~^:?*[\\\x7f" + "".join(map(chr, range(32)))
ref_letters = st.characters(exclude_characters=FORBIDDEN + "/.", codec="utf-8") | st.sampled_from(
    "\x85\u2028\u2029\x1c"
)
part = st.text(ref_letters.filter(lambda letter: letter not in FORBIDDEN), min_size=1, max_size=6)
refs = st.lists(part, min_size=1, max_size=3).map(lambda parts: "/".join(("refs", "heads", *parts)))
shas = st.text("0123456789abcdef", min_size=40, max_size=40).map(Sha)
paths = st.binary(min_size=1, max_size=12).filter(lambda path: b"\0" not in path)
no_text = st.binary(max_size=6).map(lambda raw: b"refs/pull/\xff" + bytes(set(raw) - set(range(33))) + b"/head")


@holds_for(st.dictionaries(refs, shas), st.lists(no_text, max_size=2), st.sampled_from([b"\t", b" ", b" commit "]))
def every_listed_ref_is_parsed(expected: dict[str, Sha], others: list[bytes], between: bytes) -> None:
    lines = [sha.encode() + between + ref.encode() for ref, sha in expected.items()]
    strange = [b"1" * 40 + between + ref for ref in others]
    out = b"".join(line + b"\n" for line in (*strange, *lines))
    assert {ref: sha for sha, ref in parse_refs(out)} == expected


@holds_for(st.lists(st.tuples(st.sampled_from(" +*-t!="), refs), min_size=1))
def every_pushed_ref_has_one_line(moved: Sequence[tuple[str, str]]) -> None:
    text = "".join(f"{flag}\t{'1' * 40}:{ref}\t[new branch]\n" for flag, ref in moved)
    lines = list(remote.parse_push_output(f"To /somewhere\n{text}Done\n".encode()))
    assert [line.flag for line in lines] == [flag for flag, _ in moved]
    assert {line.summary for line in lines} == {"[new branch]"}


@holds_for(st.binary(max_size=200))
def any_push_output_is_parsed(out: bytes) -> None:
    assert remote.has_moved_nothing(list(remote.parse_push_output(out))) in (True, False)


@holds_for(
    st.lists(st.builds(Difference, paths, st.sampled_from([b"100644", b"000000", b"160000"]), st.just(b"1" * 40)))
)
def every_changed_path_is_parsed(found: list[Difference]) -> None:
    out = b"".join(b":100644 %b %b %b M\0%b\0" % (one.mode, b"0" * 40, one.content, one.path) for one in found)
    assert list(contents.parse_differences(out)) == found


texts = st.text(max_size=20).filter(lambda text: "\0" not in text)


Person = tuple[str, str, str]
people = st.tuples(texts, texts, texts)


@holds_for(st.lists(st.tuples(shas, st.lists(shas, max_size=3), shas, people, people, texts)))
def every_commit_of_a_log_is_parsed(commits: list[tuple[Sha, list[Sha], Sha, Person, Person, str]]) -> None:
    fields = (
        (sha, " ".join(parents), tree, *author, *committer, message)
        for sha, parents, tree, author, committer, message in commits
    )
    out = "".join("\0".join(each) + "\0" for each in fields).encode()
    read = list(history.parse_commits(out))
    found = [(one.sha, list(one.parents), one.tree, one.author, one.committer, one.message) for one in read]
    assert found == [
        (sha, parents, tree, Signature(*author), Signature(*committer), message)
        for sha, parents, tree, author, committer, message in commits
    ]


@holds_for(refs)
def mirror_ref_maps_back_to_its_ref(ref: str) -> None:
    try:
        validate_ref(ref)
    except GitError:
        return
    assert from_mirror_ref(to_mirror_ref(ref)) == ref
    assert matches_pattern("refs/heads/*", ref)
    assert validate_ref(to_mirror_ref(ref))
    assert to_mirror_glob(ref) == to_mirror_ref(ref)


@holds_for(words | refs)
def ref_name_is_valid_or_refused(name: str) -> None:
    try:
        assert validate_ref(name) == name
    except GitError:
        return
    assert name.startswith("refs/")
    assert not set(name) & set(FORBIDDEN)


@holds_for(st.binary(max_size=50), words)
def paths_and_versions_can_always_be_shown(path: bytes, text: str) -> None:
    assert isinstance(to_display_path(path), str)
    assert process.find_version_problem(f"git version {text}") is None or process.find_version_problem(text)


@holds_for(
    st.lists(words | st.sampled_from(["Mergeyard-Pull-Request: ", "\n", "12", "9" * 5_000, "٣"]), max_size=8).map(
        "".join
    )
)
def pull_request_trailer_of_any_message_is_parsed_or_none(message: str) -> None:
    number = git_names.parse_pull_request_trailer(message)
    assert number is None or 1 <= number < 10**10
