"""What a checkout tells of a pull request's changes."""

import subprocess
from pathlib import Path

import pytest

from mergeyard.cli.targets.checkout import CannotTell, Checkout
from tests.support.repositories import Executable, Origin, Submodule, Symlink


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    origin = Origin.made(tmp_path / "app.git")
    origin.commit("main", {"a.txt": "1", "b.txt": "1", "dir/c.txt": "long enough to be known again\n" * 9})
    origin.branch("topic", upon="main")
    return origin


def changed(origin: Origin, base: str = "main", head: str = "topic") -> set[str]:
    checkout = Checkout(origin.path)
    return checkout.changed_paths(checkout.commit(base), checkout.commit(head))


def test_what_was_added_changed_and_deleted_counts(origin: Origin):
    origin.commit("topic", {"new/d.txt": "1", "a.txt": "2", "b.txt": None})
    assert changed(origin) == {"new/d.txt", "a.txt", "b.txt"}


def test_what_was_moved_counts_with_both_names(origin: Origin):
    origin.rename("topic", "dir/c.txt", "elsewhere/c.txt")
    assert changed(origin) == {"dir/c.txt", "elsewhere/c.txt"}


def test_modes_links_and_submodules_count(origin: Origin):
    origin.commit("topic", {"a.txt": Executable("1"), "link": Symlink("a.txt"), "sub": Submodule("1" * 40)})
    assert changed(origin) == {"a.txt", "link", "sub"}


def test_a_submodule_counts_also_where_the_pull_request_says_to_ignore_it(origin: Origin, tmp_path: Path):
    hidden = '[submodule "sub"]\npath = sub\nurl = ../sub\nignore = all\n'
    origin.commit("topic", {"sub": Submodule("1" * 40), ".gitmodules": hidden})
    clone = ["git", "clone", "--quiet", "--branch", "topic", origin.url, "clone"]
    subprocess.run(clone, cwd=tmp_path, check=True)
    checkout = Checkout(tmp_path / "clone")
    paths = checkout.changed_paths(checkout.commit("origin/main"), checkout.commit("HEAD"))
    assert paths == {"sub", ".gitmodules"}


def test_names_come_as_they_are(origin: Origin):
    names = {"größe/ß.txt", "a\nb", 'with "quotes"', "tab\there", "no text \udcff", " "}
    origin.commit("topic", dict.fromkeys(names, "1"))
    assert changed(origin) == names


def test_what_the_base_changed_meanwhile_does_not_count(origin: Origin):
    origin.commit("topic", {"a.txt": "2"})
    origin.commit("main", {"b.txt": "2"})
    assert changed(origin) == {"a.txt"}


def test_what_came_from_the_base_by_merging_it_does_not_count(origin: Origin):
    origin.commit("topic", {"a.txt": "2"})
    origin.commit("main", {"b.txt": "2"})
    origin.commit("topic", {"b.txt": "2"}, merging="main")
    assert changed(origin) == {"a.txt"}


def test_after_merges_crosswise_every_change_since_any_meeting_counts(origin: Origin):
    origin.commit("topic", {"a.txt": "2"})
    origin.commit("main", {"b.txt": "2"})
    old_main = origin.tip("main")
    origin.commit("main", {"a.txt": "2"}, merging="topic")
    origin.commit("topic", {"b.txt": "2"}, merging=old_main)
    origin.commit("topic", {"new.txt": "2"})
    assert changed(origin) == {"a.txt", "b.txt", "new.txt"}


def test_a_file_is_read_as_a_commit_has_it(origin: Origin):
    origin.commit("topic", {".mergeyard.toml": "version = 1"})
    checkout = Checkout(origin.path)
    assert checkout.file(checkout.commit("topic"), ".mergeyard.toml") == b"version = 1"
    assert checkout.file(checkout.commit("main"), ".mergeyard.toml") is None


def test_a_folder_is_no_file(origin: Origin):
    checkout = Checkout(origin.path)
    with pytest.raises(CannotTell, match="cannot read dir"):
        checkout.file(checkout.commit("main"), "dir")


@pytest.mark.parametrize("revision", ["gone", "-x", "--all", "", "main:a.txt", "main..topic"])
def test_what_is_no_commit_is_told(origin: Origin, revision: str):
    with pytest.raises(CannotTell, match="There is no commit"):
        Checkout(origin.path).commit(revision)


def test_a_folder_that_is_no_checkout_is_told(tmp_path: Path):
    with pytest.raises(CannotTell, match="not a git repository"):
        Checkout(tmp_path).commit("HEAD")


def test_a_shallow_clone_is_told_to_fetch_more(origin: Origin, tmp_path: Path):
    origin.commit("main", {"b.txt": "2"})
    origin.commit("topic", {"a.txt": "2"})
    shallow = ["git", "clone", "--quiet", "--depth=1", "--no-single-branch", f"file://{origin.url}", "clone"]
    subprocess.run(shallow, cwd=tmp_path, check=True)
    checkout = Checkout(tmp_path / "clone")
    with pytest.raises(CannotTell, match="A shallow clone is not enough"):
        checkout.changed_paths(checkout.commit("origin/main"), checkout.commit("origin/topic"))


def test_a_clone_without_the_contents_of_files_is_enough(origin: Origin, tmp_path: Path):
    origin.run("config", "uploadpack.allowFilter", "true")
    origin.rename("topic", "dir/c.txt", "c.txt")
    bare = ["git", "clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{origin.url}", "clone"]
    subprocess.run(bare, cwd=tmp_path, check=True)
    subprocess.run(["git", "remote", "set-url", "origin", "gone"], cwd=tmp_path / "clone", check=True)
    checkout = Checkout(tmp_path / "clone")
    paths = checkout.changed_paths(checkout.commit("origin/main"), checkout.commit("origin/topic"))
    assert paths == {"dir/c.txt", "c.txt"}
