"""The contents of commits by path."""

import os
from pathlib import Path

import pytest

from mergeyard.domain.ids import Sha
from mergeyard.ports.git import Conflict, InvalidTreeError, Mirror, RefUpdate, TooLargeFile
from tests.support.asynchronous import asynchronous
from tests.support.repositories import Executable, Files, Origin, Submodule, Symlink

HOSTILE = ["with space", "quote'\"", "line\nbreak", "-dash", "ünï", "tab\there", ":(glob)*", "back\\slash", "nul\udcff"]


async def landed(mirror: Mirror, origin: Origin, tree: Sha | Conflict) -> str:
    assert not isinstance(tree, Conflict)
    await mirror.push(RefUpdate("refs/heads/look", origin.ref("look"), await mirror.commit(tree, [], "To look at")))
    return "look"


@asynchronous
async def test_changed_paths_are_all_that_differ(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    origin.rename("main", "b.txt", "z.txt")
    origin.chmod("main", "a.txt")
    origin.delete("main", "lib/c.txt")
    after = origin.commit("main", {"new": Symlink("a.txt"), "sub": Submodule(origin.unknown_sha(2))})
    await mirror.fetch(["refs/heads/main"])
    paths = {b"b.txt", b"z.txt", b"a.txt", b"lib/c.txt", b"new", b"sub"}
    assert await mirror.changed_paths(before, after) == await mirror.changed_paths(after, before) == paths
    assert await mirror.changed_paths(await mirror.tree(before), await mirror.tree(after)) == paths
    assert await mirror.changed_paths(after, after) == frozenset()


@asynchronous
async def test_changed_paths_with_hostile_names_are_exact(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    after = origin.commit("main", dict.fromkeys(HOSTILE, "1"))
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.changed_paths(before, after) == {name.encode(errors="surrogateescape") for name in HOSTILE}


@pytest.mark.parametrize(
    ("glob", "matched"),
    [
        ("ci/**", {"ci/a.yml", "ci/sub/b.yml"}),
        ("ci/", {"ci/a.yml", "ci/sub/b.yml"}),
        ("ci", {"ci/a.yml", "ci/sub/b.yml"}),
        ("ci/*", {"ci/a.yml"}),
        ("ci/?.yml", {"ci/a.yml"}),
        ("**/*.yml", {"ci/a.yml", "ci/sub/b.yml", "top.yml"}),
        ("ci/**/b.yml", {"ci/sub/b.yml"}),
        ("[id].txt", {"[id].txt"}),
        (":(exclude)x", set[str]()),
        ("b.txt", {"b.txt"}),
        ("z.txt", {"z.txt"}),
        ("nothing", set[str]()),
    ],
)
@asynchronous
async def test_globs_select_changed_paths(mirror: Mirror, origin: Origin, glob: str, matched: set[str]):
    before = origin.tip("main")
    origin.rename("main", "b.txt", "z.txt")
    after = origin.commit("main", {"ci/a.yml": "1", "ci/sub/b.yml": "1", "top.yml": "1", "[id].txt": "1", "i": "1"})
    await mirror.fetch(["refs/heads/main"])
    assert set(await mirror.changed_paths_matching(before, after, [glob])) == matched
    assert await mirror.changed_paths_matching(after, after, [glob]) == ()


@asynchronous
async def test_no_globs_select_no_path(mirror: Mirror, origin: Origin):
    before, after = origin.tip("main"), origin.commit("main", {"new": "1"})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.changed_paths_matching(before, after, []) == ()


@asynchronous
async def test_only_the_first_of_very_many_matching_paths_are_returned(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    after = origin.commit("main", {f"ci/{'x' * 200}{number}": "1" for number in range(6000)})
    await mirror.fetch(["refs/heads/main"])
    found = await mirror.changed_paths_matching(before, after, ["ci/**"])
    assert 4000 < len(found) < 6000


@asynchronous
async def test_a_file_that_becomes_a_directory_is_both_its_paths(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    after = origin.commit("main", {"a.txt": None, "a.txt/inside": "1"})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.changed_paths(before, after) == {b"a.txt", b"a.txt/inside"}


@pytest.mark.parametrize(
    "change",
    [
        {"a.txt": "2\n"},
        {"a.txt": None},
        {"run": Executable("exit 0"), "link": Symlink("a.txt"), "sub": Submodule("2"), "image": b"\0\xff"},
        {"a.txt": None, "a.txt/inside": "1"},
        {"lib/c.txt": None, "lib": "now a file"},
        dict.fromkeys(HOSTILE, "1"),
    ],
    ids=["content", "removal", "modes", "directory", "file", "hostile names"],
)
@asynchronous
async def test_a_transplant_carries_a_change_to_another_tip(mirror: Mirror, origin: Origin, change: Files):
    before = origin.tip("main")
    if "sub" in change:
        change = {**change, "sub": Submodule(origin.unknown_sha(2))}
    source = origin.branch("feature", base="main", files=change)
    origin.commit("main", {"b.txt": "later\n", "other": "1"})
    await mirror.fetch(["refs/heads/*"])
    tree = await mirror.replace_paths(origin.tip("main"), source, await mirror.changed_paths(before, source))
    ref = await landed(mirror, origin, tree)
    later = {"b.txt": "later\n", "other": "1"}
    assert origin.files(ref) == {**origin.files("feature"), **later}
    assert origin.modes(ref) == {**origin.modes("feature"), "other": "100644"}


@asynchronous
async def test_a_transplant_takes_the_named_paths_alone(mirror: Mirror, origin: Origin):
    source = origin.branch("feature", base="main", files={"a.txt": "2\n", "b.txt": "2\n"})
    await mirror.fetch(["refs/heads/*"])
    tip = origin.tip("main")
    ref = await landed(mirror, origin, await mirror.replace_paths(tip, source, [b"a.txt", b"in neither"]))
    assert origin.files(ref) == {**origin.files("main"), "a.txt": "2\n"}
    assert await mirror.replace_paths(tip, source, []) == await mirror.tree(tip)


@pytest.mark.parametrize(("ours", "theirs"), [("thing/inside", "thing"), ("thing", "thing/in/side")])
@asynchronous
async def test_a_transplant_never_removes_paths_that_were_not_named(
    mirror: Mirror, origin: Origin, ours: str, theirs: str
):
    source = origin.branch("feature", base="main", files={theirs: "new"})
    tip = origin.commit("main", {ours: "another change"})
    await mirror.fetch(["refs/heads/*"])
    assert await mirror.replace_paths(tip, source, [theirs.encode()]) == Conflict((ours,))


@pytest.mark.parametrize("name", [".git/config", "lib/.GIT/hooks/post-checkout", "git~1"])
@asynchronous
async def test_a_transplant_never_leaves_out_a_name_that_git_puts_into_no_index(
    mirror: Mirror, origin: Origin, name: str
):
    before = origin.tip("main")
    source = origin.branch("source", base="main", files={name: "1", "beside": "2"})
    origin.commit("main", {"meanwhile": "3"})
    await mirror.fetch(["refs/heads/*"])
    moved = await mirror.replace_paths(origin.tip("main"), source, await mirror.changed_paths(before, source))
    assert moved == Conflict((name,))


@asynchronous
async def test_a_transplant_onto_a_name_that_git_puts_into_no_index_is_a_conflict(mirror: Mirror, origin: Origin):
    source = origin.branch("source", base="main", files={"a.txt": "2"})
    origin.commit("main", {".git/config": "1"})
    await mirror.fetch(["refs/heads/*"])
    assert await mirror.replace_paths(origin.tip("main"), source, [b"a.txt"]) == Conflict(())


@asynchronous
async def test_a_file_is_read_and_anything_else_is_none(mirror: Mirror, origin: Origin):
    tip = origin.commit(
        "main",
        {
            "lib/x": b"\0\xff",
            "link": Symlink("a.txt"),
            "sub": Submodule(origin.unknown_sha(2)),
            "run": Executable("go"),
        },
    )
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.read_file(tip, "lib/x", max_bytes=1000) == b"\0\xff"
    assert await mirror.read_file(tip, "run", max_bytes=1000) == b"go"
    for path in ("absent", "lib", "lib/", "lib/absent", "a.txt/x", "link", "sub", "*", "-x", "", "a\0b"):
        assert await mirror.read_file(tip, path, max_bytes=1000) is None, path


@pytest.mark.parametrize("name", HOSTILE)
@asynchronous
async def test_a_file_with_a_hostile_name_is_read(mirror: Mirror, origin: Origin, name: str):
    tip = origin.commit("main", {name: "content"})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.read_file(tip, name, max_bytes=1000) == b"content"


@asynchronous
async def test_an_export_is_the_whole_commit_and_nothing_else(mirror: Mirror, origin: Origin, tmp_path: Path):
    tip = origin.commit(
        "main",
        {
            "run": Executable("exit 0"),
            "link": Symlink("a.txt"),
            "deep/er/x": b"\0\xff",
            "sub": Submodule(origin.unknown_sha(2)),
        },
    )
    await mirror.fetch(["refs/heads/main"])
    folder = tmp_path / "work"
    folder.mkdir()
    await mirror.export_tree(tip, str(folder))
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"a.txt", "b.txt", "lib/c.txt", "run", "link", "deep/er/x"}
    assert (folder / "link").readlink() == Path("a.txt")
    assert os.access(folder / "run", os.X_OK)
    assert not os.access(folder / "a.txt", os.X_OK)
    assert (folder / "deep/er/x").read_bytes() == b"\0\xff"


@asynchronous
async def test_an_export_is_byte_for_byte_whatever_attributes_say(mirror: Mirror, origin: Origin, tmp_path: Path):
    attributes = "* text eol=crlf ident export-subst\nsecret export-ignore\nu16 working-tree-encoding=UTF-16\n"
    files = {".gitattributes": attributes, "secret": "s\n", "u16": "u\n", "id": "$Id$ $Format:%H$\n"}
    tip = origin.commit("main", files)
    await mirror.fetch(["refs/heads/main"])
    await mirror.export_tree(tip, str(tmp_path / "work"))
    assert {name: (tmp_path / "work" / name).read_bytes().decode() for name in files} == files


@asynchronous
async def test_two_exports_are_independent(mirror: Mirror, origin: Origin, tmp_path: Path):
    before, after = origin.tip("main"), origin.delete("main", "a.txt")
    await mirror.fetch(["refs/heads/main"])
    await mirror.export_tree(before, str(tmp_path / "before"))
    await mirror.export_tree(after, str(tmp_path / "after"))
    assert (tmp_path / "before" / "a.txt").exists()
    assert not (tmp_path / "after" / "a.txt").exists()


@asynchronous
async def test_a_file_is_measured_before_it_is_read(mirror: Mirror, origin: Origin):
    tip = origin.commit("main", {"large": "x" * 1001, "fits": "x" * 1000})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.read_file(tip, "large", max_bytes=1000) == TooLargeFile(1001)
    assert await mirror.read_file(tip, "fits", max_bytes=1000) == b"x" * 1000


@pytest.mark.parametrize("name", [".git", ".GIT", "git~1", ".git ", ".g\u200cit", "..", "."])
@asynchronous
async def test_a_folder_that_git_refuses_is_a_problem_of_the_commit_that_brings_it(
    mirror: Mirror, origin: Origin, name: str
):
    before = origin.tip("main")
    bad = origin.commit_raw_entry("main", name, f"040000 tree {origin.tree('main')}")
    later = origin.run("commit-tree", "-p", bad, "-m", "Away with it", origin.tree(before)).decode().strip()
    origin.set_ref("main", later)
    await mirror.fetch(["refs/heads/main"])
    assert any(problem.startswith("hasDot") for problem in await mirror.tree_problems(Sha(later), without=before))
    assert await mirror.tree_problems(before, without=None) == ()
    assert await mirror.tree_problems(Sha(later), without=bad) == ()


@pytest.mark.parametrize(
    ("name", "kind", "content", "problem"),
    [
        (".gitmodules", "120000", "elsewhere", "gitmodulesSymlink"),
        (".gitmodules", "100644", '[submodule "x"]\n\tpath = x\n\turl = --upload-pack=evil\n', "gitmodulesUrl"),
        (".gitmodules", "100644", '[submodule "../x"]\n\tpath = x\n\turl = https://example.org\n', "gitmodulesName"),
    ],
)
@asynchronous
async def test_submodules_that_git_refuses_are_a_problem(
    mirror: Mirror, origin: Origin, name: str, kind: str, content: str, problem: str
):
    before = origin.tip("main")
    after = origin.commit_raw_entry("main", name, f"{kind} blob {origin.blob(content)}")
    await mirror.fetch(["refs/heads/main"])
    found = await mirror.tree_problems(after, without=before)
    assert [each.partition(":")[0] for each in found] == [problem]


@asynchronous
async def test_ordinary_and_hostile_names_are_no_problem(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    usual = {
        ".gitignore": "x",
        "git": "x",
        ".gitattributes": "* text",
        ".github/a": "x",
        "sub": Submodule(origin.unknown_sha(2)),
    }
    after = origin.commit("main", {**usual, **dict.fromkeys(HOSTILE, "1")})
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.tree_problems(after, without=before) == ()
    assert await mirror.tree_problems(after, without=after) == ()


@asynchronous
async def test_modes_of_old_programs_are_no_problem(mirror: Mirror, origin: Origin):
    before = origin.tip("main")
    raw = b"0100664 a\0" + bytes.fromhex(origin.blob("1"))
    tree = origin.run("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw).decode().strip()
    after = Sha(origin.run("commit-tree", "-p", before, "-m", "Old", tree).decode().strip())
    origin.set_ref("main", after)
    await mirror.fetch(["refs/heads/main"])
    assert await mirror.tree_problems(after, without=before) == ()


@asynchronous
async def test_a_commit_whose_names_git_refuses_is_not_exported(mirror: Mirror, origin: Origin, tmp_path: Path):
    bad = origin.commit_raw_entry("main", ".git", f"040000 tree {origin.tree('main')}")
    await mirror.fetch(["refs/heads/main"])
    with pytest.raises(InvalidTreeError, match="invalid path"):
        await mirror.export_tree(bad, str(tmp_path / "out"))
