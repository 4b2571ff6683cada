"""The CI examples run for test branches, report the checks that the pages name, and call existing commands."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mergeyard import __version__
from mergeyard.cli import app
from mergeyard.domain.config import Config, Mode
from mergeyard.service import repo_config
from mergeyard.service.repo_config import RepositoryConfig, UnmatchedPolicy
from tests.deploy.files import read_yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.rglob("*.yml"))
CI = ROOT / "docs" / "admins" / "ci.md"
TARGETS = ROOT / "docs" / "admins" / "impacted-targets.md"

GITHUB: dict[Any, Any] = read_yaml(EXAMPLES / "github-actions" / "ci.yml")
GITEA: dict[Any, Any] = read_yaml(EXAMPLES / "gitea-actions" / "ci.yml")
GITLAB: dict[Any, Any] = read_yaml(EXAMPLES / "gitlab-ci" / "gitlab-ci.yml")

each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(EXAMPLES)))
both_workflows = pytest.mark.parametrize("workflow", [GITHUB, GITEA], ids=["GitHub", "Gitea"])


def triggers(workflow: dict[Any, Any]) -> dict[str, Any]:
    """YAML 1.1 reads the key `on` as true."""
    return workflow[True]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def commands() -> list[list[str]]:
    """Every call of `mergeyard targets` that a reader could copy, split into words."""
    texts = [*(block for page in (CI, TARGETS) for block in blocks(page, "sh")), *(file.read_text() for file in FILES)]
    whole = [re.sub(r"\\?\n\s+(?!-\s)", " ", text) for text in texts]
    lines = [line for text in whole for line in re.findall(r"(?<![\w-])targets (?:set|from-paths)[^\n]*", text)]
    return [[word for word in shlex.split(line.partition(" >> ")[0]) if word != "…"] for line in lines]


# The examples


@each_file
def test_example_starts_with_where_to_copy_it(file: Path):
    assert re.match(r"# (Copy|Add) to \.[\w/-]+\.yml\. ", file.read_text())


@each_file
def test_every_example_is_linked_from_a_page(file: Path):
    link = f"](../../{file.relative_to(ROOT)})"
    assert link in CI.read_text() + TARGETS.read_text()


@each_file
def test_every_job_has_a_timeout(file: Path):
    content = read_yaml(file)
    jobs = content.get("jobs") or {name: job for name, job in content.items() if name != "workflow"}
    assert all("timeout-minutes" in job or "timeout" in job for job in jobs.values())


@each_file
def test_mergeyard_image_has_the_current_version(file: Path):
    assert set(re.findall(r"/mergeyard:([\w.]+)", file.read_text())) <= {__version__}


@both_workflows
def test_workflow_runs_for_test_branches_and_pull_requests(workflow: dict[Any, Any]):
    assert triggers(workflow) == {"push": {"branches": ["mergeyard/**"]}, "pull_request": None}


def test_pipeline_runs_for_test_branches_and_merge_requests():
    rules = [rule["if"] for rule in GITLAB["workflow"]["rules"]]
    (pattern,) = re.findall(r"\$CI_COMMIT_BRANCH =~ /(.+)/$", rules[0])
    assert re.search(pattern, "mergeyard/pr-1/0b5c")
    assert not re.search(pattern, "topic/mergeyard/x")
    assert rules[1:] == ['$CI_PIPELINE_SOURCE == "merge_request_event"']


def test_job_with_the_token_runs_no_code_of_the_pull_request():
    workflow = read_yaml(EXAMPLES / "github-actions" / "targets.yml")
    assert triggers(workflow).keys() == {"pull_request_target"}
    (job,) = workflow["jobs"].values()
    checkout, *steps = job["steps"]
    assert "ref" not in checkout["with"]
    assert all(step["run"].startswith(("git fetch ", "docker run ")) for step in steps)
    assert not any("${{" in step["run"] for step in steps)


# The pages


def test_page_names_the_statuses_that_the_examples_report():
    named = re.findall(r"^\| [\w ]+ \| \[.+?\) \| `([^`]+)`", CI.read_text(), re.MULTILINE)
    (github,) = GITHUB["jobs"]
    (gitlab,) = GITLAB.keys() - {"workflow"}
    (gitea,) = GITEA["jobs"]
    assert named == [github, gitlab, f"{GITEA['name']} / {gitea} (push)"]


def test_repository_files_of_the_pages_parse():
    texts = [*blocks(CI, "toml"), *blocks(TARGETS, "toml")]
    whole = [text if text.startswith("version") else f"version = 1\n{text}" for text in texts]
    assert len(whole) == 3
    assert all(isinstance(repo_config.parse_config(text.encode()), RepositoryConfig) for text in whole)


def test_settings_named_by_the_pages_exist():
    assert isinstance(Config().create_prs_for_testing_branches, bool)
    assert "`createPrsForTestingBranches`" in CI.read_text()
    assert f"In `{Mode.PARALLEL.value}` " in TARGETS.read_text()


def test_page_lists_every_policy_for_unmatched_paths():
    assert set(re.findall(r'^\| `"(\w+)"` \|', TARGETS.read_text(), re.MULTILINE)) == set(UnmatchedPolicy)


def test_commands_to_copy_use_only_existing_options():
    assert len(commands()) >= 6
    for words in commands():
        result = CliRunner().invoke(app, [*words, "--help"])
        assert result.exit_code == 0, (words, result.output)
