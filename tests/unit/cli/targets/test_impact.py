"""What changed paths impact."""

import pytest

from mergeyard.cli.targets.impact import impacted, on_one_line, targets_named
from mergeyard.domain.targets import ALL, NOTHING, named
from mergeyard.service.repository_config import PathTargets, Unmatched

GLOBS = {"app": ("app/**", "lib/**"), "docs": ("docs/**", "*.md"), "lib": ("lib/**",), "ALL": ("Makefile",)}


def told(unmatched: Unmatched) -> PathTargets:
    return PathTargets(GLOBS, unmatched)


def test_a_path_impacts_every_target_whose_globs_cover_it():
    assert impacted(["lib/a.py"], told(Unmatched.ALL)) == named("app", "lib")


def test_several_paths_impact_what_each_of_them_impacts():
    assert impacted(["app/a.py", "README.md"], told(Unmatched.ALL)) == named("app", "docs")


def test_no_change_impacts_nothing():
    assert impacted([], told(Unmatched.ALL)) == NOTHING


@pytest.mark.parametrize("unmatched", Unmatched)
def test_what_the_globs_of_all_cover_impacts_all(unmatched: Unmatched):
    assert impacted(["docs/a", "Makefile"], told(unmatched)) == ALL


def test_without_another_word_an_uncovered_path_impacts_all():
    assert impacted(["docs/a", "new/a"], PathTargets(GLOBS)) == ALL
    assert impacted(["a"], PathTargets({})) == ALL


def test_an_uncovered_path_can_be_ignored():
    assert impacted(["docs/a", "new/a"], told(Unmatched.IGNORE)) == named("docs")
    assert impacted(["new/a"], told(Unmatched.IGNORE)) == NOTHING


def test_an_uncovered_path_can_be_a_target_itself():
    assert impacted(["docs/a", "new/größe"], told(Unmatched.PATH)) == named("docs", "new/größe")


def test_a_path_that_is_no_text_is_named_so_that_it_stays_on_one_line():
    assert on_one_line("a\nb\x1b\udcff/ü") == r"a\nb\x1b\udcff/ü"
    assert impacted(["a\nb"], told(Unmatched.PATH)) == named(r"a\nb")


def test_a_path_too_long_for_a_name_impacts_all():
    assert impacted(["ü" * 512], told(Unmatched.PATH)) == named("ü" * 512)
    assert impacted(["ü" * 512 + "a"], told(Unmatched.PATH)) == ALL


def test_whoever_names_all_among_others_means_all():
    assert targets_named(["a", "ALL"]) == ALL
    assert targets_named(["a", "b", "a"]) == named("a", "b")
