"""Impacted targets from the changed paths of a checkout."""

import re
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.cli.targets import (
    Checkout,
    CheckoutError,
    compile_globs,
    compute_impacted_targets,
    escape_unprintable,
    to_impacted_targets,
)
from mergeyard.domain.pull_requests import ALL_TARGETS, NO_TARGETS, impacted_targets_from_names
from mergeyard.service.repo_config import PathTargets, UnmatchedPolicy
from tests.support.repositories import Executable, Origin, Submodule, Symlink


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin.create(tmp_path / "app.git")
    origin.commit("main", {"a.txt": "1", "b.txt": "1", "dir/c.txt": "long enough to be known again\n" * 9})
    origin.branch("topic", base="main")
    return origin


def changed(origin: Origin, base: str = "main", head: str = "topic") -> set[str]:
    checkout = Checkout(origin.path)
    return checkout.list_changed_paths(checkout.resolve_commit(base), checkout.resolve_commit(head))


def test_added_changed_and_deleted_files_count(origin: Origin):
    origin.commit("topic", {"new/d.txt": "1", "a.txt": "2", "b.txt": None})
    assert changed(origin) == {"new/d.txt", "a.txt", "b.txt"}


def test_a_renamed_file_counts_with_both_names(origin: Origin):
    origin.rename("topic", "dir/c.txt", "elsewhere/c.txt")
    assert changed(origin) == {"dir/c.txt", "elsewhere/c.txt"}


def test_modes_symlinks_and_submodules_count(origin: Origin):
    origin.commit("topic", {"a.txt": Executable("1"), "link": Symlink("a.txt"), "sub": Submodule("1" * 40)})
    assert changed(origin) == {"a.txt", "link", "sub"}


def test_a_submodule_counts_even_if_the_pull_request_ignores_it(origin: Origin, tmp_path: Path):
    hidden = '[submodule "sub"]\npath = sub\nurl = ../sub\nignore = all\n'
    origin.commit("topic", {"sub": Submodule("1" * 40), ".gitmodules": hidden})
    clone = ["git", "clone", "--quiet", "--branch", "topic", origin.url, "clone"]
    subprocess.run(clone, cwd=tmp_path, check=True)
    checkout = Checkout(tmp_path / "clone")
    paths = checkout.list_changed_paths(checkout.resolve_commit("origin/main"), checkout.resolve_commit("HEAD"))
    assert paths == {"sub", ".gitmodules"}


def test_paths_are_not_quoted(origin: Origin):
    names = {"größe/ß.txt", "a\nb", 'with "quotes"', "tab\there", "no text \udcff", " "}
    origin.commit("topic", dict.fromkeys(names, "1"))
    assert changed(origin) == names


def test_later_changes_of_the_base_do_not_count(origin: Origin):
    origin.commit("topic", {"a.txt": "2"})
    origin.commit("main", {"b.txt": "2"})
    assert changed(origin) == {"a.txt"}


def test_changes_merged_from_the_base_do_not_count(origin: Origin):
    origin.commit("topic", {"a.txt": "2"})
    origin.commit("main", {"b.txt": "2"})
    origin.commit("topic", {"b.txt": "2"}, merging="main")
    assert changed(origin) == {"a.txt"}


def test_after_criss_cross_merges_changes_since_any_merge_base_count(origin: Origin):
    origin.commit("topic", {"a.txt": "2"})
    origin.commit("main", {"b.txt": "2"})
    old_main = origin.tip("main")
    origin.commit("main", {"a.txt": "2"}, merging="topic")
    origin.commit("topic", {"b.txt": "2"}, merging=old_main)
    origin.commit("topic", {"new.txt": "2"})
    assert changed(origin) == {"a.txt", "b.txt", "new.txt"}


def test_a_file_is_read_from_the_commit(origin: Origin):
    origin.commit("topic", {".mergeyard.toml": "version = 1"})
    checkout = Checkout(origin.path)
    assert checkout.read_file(checkout.resolve_commit("topic"), ".mergeyard.toml") == b"version = 1"
    assert checkout.read_file(checkout.resolve_commit("main"), ".mergeyard.toml") is None


def test_a_folder_cannot_be_read_as_a_file(origin: Origin):
    checkout = Checkout(origin.path)
    with pytest.raises(CheckoutError, match="cannot read dir"):
        checkout.read_file(checkout.resolve_commit("main"), "dir")


@pytest.mark.parametrize("revision", ["gone", "-x", "--all", "", "main:a.txt", "main..topic"])
def test_an_unknown_commit_is_an_error(origin: Origin, revision: str):
    with pytest.raises(CheckoutError, match="has no commit"):
        Checkout(origin.path).resolve_commit(revision)


def test_a_folder_that_is_no_repository_is_an_error(tmp_path: Path):
    with pytest.raises(CheckoutError, match="not a git repository"):
        Checkout(tmp_path).resolve_commit("HEAD")


def test_a_shallow_clone_is_an_error(origin: Origin, tmp_path: Path):
    origin.commit("main", {"b.txt": "2"})
    origin.commit("topic", {"a.txt": "2"})
    shallow = ["git", "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{origin.url}", "clone"]
    subprocess.run(shallow, cwd=tmp_path, check=True)
    checkout = Checkout(tmp_path / "clone")
    with pytest.raises(CheckoutError, match="a shallow clone is not enough"):
        checkout.list_changed_paths(checkout.resolve_commit("origin/main"), checkout.resolve_commit("origin/topic"))


def test_a_blobless_clone_is_enough(origin: Origin, tmp_path: Path):
    origin.run("config", "uploadpack.allowFilter", "true")
    origin.rename("topic", "dir/c.txt", "c.txt")
    bare = ["git", "clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{origin.url}", "clone"]
    subprocess.run(bare, cwd=tmp_path, check=True)
    subprocess.run(["git", "remote", "set-url", "origin", "gone"], cwd=tmp_path / "clone", check=True)
    checkout = Checkout(tmp_path / "clone")
    paths = checkout.list_changed_paths(checkout.resolve_commit("origin/main"), checkout.resolve_commit("origin/topic"))
    assert paths == {"dir/c.txt", "c.txt"}


PATHS = st.lists(st.text(string.ascii_lowercase + ".\n", min_size=1, max_size=3), min_size=1, max_size=5).map("/".join)


def matches(glob: str, path: str) -> bool:
    return compile_globs([glob]).fullmatch(path) is not None


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("Makefile", ["Makefile"], ["tools/Makefile", "Makefile2", "makefile", "Makefile/x"]),
        ("*.md", ["README.md", ".md"], ["docs/a.md", "a.mdx"]),
        ("docs/*", ["docs/a", "docs/.hidden"], ["docs", "docs/a/b"]),
        ("docs/**", ["docs/a", "docs/a/b/c"], ["docs", "docs2/a", "a/docs/b"]),
        ("docs/", ["docs/a", "docs/a/b/c"], ["docs", "docs2/a"]),
        ("**", ["a", "a/b/c"], []),
        ("**/*.py", ["a.py", "b/a.py", "c/b/a.py"], ["a.pyc", "a.py/b"]),
        ("src/**/test.py", ["src/test.py", "src/a/b/test.py"], ["src/a_test.py", "test.py"]),
        ("**/tests/**", ["tests/a", "a/tests/b/c"], ["tests", "a/tests", "mytests/a"]),
        ("a**z", ["az", "abz"], ["a/z"]),
        ("?.c", ["a.c", "ü.c"], ["ab.c", ".c", "/.c"]),
        ("app/[id]/page.tsx", ["app/[id]/page.tsx"], ["app/i/page.tsx"]),
        ("a.b+c", ["a.b+c"], ["axb+c", "a.bbc"]),
        ("größe/*", ["größe/ß"], ["grosse/a"]),
    ],
)
def test_a_glob_matches_whole_paths(glob: str, matching: list[str], other: list[str]):
    assert [path for path in matching if not matches(glob, path)] == []
    assert [path for path in other if matches(glob, path)] == []


def test_globs_match_line_breaks():
    assert matches("a/**", "a/b\nc/d")
    assert matches("*.py", "a\nb.py")
    assert not matches("a", "a\n")


def test_several_globs_match_what_one_of_them_matches():
    either = compile_globs(["a", "b/*"])
    assert [path for path in ("a", "b/c", "ab/c", "a/c", "b") if either.fullmatch(path)] == ["a", "b/c"]


def test_many_stars_do_not_backtrack():
    assert not matches("**/" * 200 + "*" * 200 + "/x", "a/" * 2000 + "y")


@given(PATHS)
def test_a_path_is_matched_by_itself_and_by_its_parent_folders(path: str):
    assert matches(path, path)
    assert matches(re.sub("[^/]", "?", path), path)
    parts = path.split("/")
    assert all(matches("/".join([*parts[:depth], "**"]), path) for depth in range(len(parts)))


GLOBS = {"app": ("app/**", "lib/**"), "docs": ("docs/**", "*.md"), "lib": ("lib/**",), "ALL": ("Makefile",)}


def path_targets(unmatched: UnmatchedPolicy) -> PathTargets:
    return PathTargets(GLOBS, unmatched)


def test_a_path_impacts_every_target_whose_globs_match_it():
    assert compute_impacted_targets(["lib/a.py"], path_targets(UnmatchedPolicy.ALL)) == impacted_targets_from_names(
        "app", "lib"
    )


def test_several_paths_impact_what_each_of_them_impacts():
    assert compute_impacted_targets(
        ["app/a.py", "README.md"], path_targets(UnmatchedPolicy.ALL)
    ) == impacted_targets_from_names("app", "docs")


def test_no_change_impacts_nothing():
    assert compute_impacted_targets([], path_targets(UnmatchedPolicy.ALL)) == NO_TARGETS


@pytest.mark.parametrize("unmatched", UnmatchedPolicy)
def test_a_path_that_a_glob_of_all_matches_impacts_all(unmatched: UnmatchedPolicy):
    assert compute_impacted_targets(["docs/a", "Makefile"], path_targets(unmatched)) == ALL_TARGETS


def test_by_default_an_unmatched_path_impacts_all():
    assert compute_impacted_targets(["docs/a", "new/a"], PathTargets(GLOBS)) == ALL_TARGETS
    assert compute_impacted_targets(["a"], PathTargets({})) == ALL_TARGETS


def test_an_unmatched_path_can_be_ignored():
    assert compute_impacted_targets(
        ["docs/a", "new/a"], path_targets(UnmatchedPolicy.IGNORE)
    ) == impacted_targets_from_names("docs")
    assert compute_impacted_targets(["new/a"], path_targets(UnmatchedPolicy.IGNORE)) == NO_TARGETS


def test_an_unmatched_path_can_be_a_target_itself():
    assert compute_impacted_targets(
        ["docs/a", "new/größe"], path_targets(UnmatchedPolicy.PATH)
    ) == impacted_targets_from_names("docs", "new/größe")


def test_unprintable_characters_in_a_path_are_escaped():
    assert escape_unprintable("a\nb\x1b\udcff/ü") == r"a\nb\x1b\udcff/ü"
    assert compute_impacted_targets(["a\nb"], path_targets(UnmatchedPolicy.PATH)) == impacted_targets_from_names(
        r"a\nb"
    )


def test_a_path_too_long_for_a_name_impacts_all():
    assert compute_impacted_targets(["ü" * 512], path_targets(UnmatchedPolicy.PATH)) == impacted_targets_from_names(
        "ü" * 512
    )
    assert compute_impacted_targets(["ü" * 512 + "a"], path_targets(UnmatchedPolicy.PATH)) == ALL_TARGETS


def test_all_among_other_targets_means_all():
    assert to_impacted_targets(["a", "ALL"]) == ALL_TARGETS
    assert to_impacted_targets(["a", "b", "a"]) == impacted_targets_from_names("a", "b")
