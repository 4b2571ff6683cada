"""The CI examples and recipes run for test branches, report the checks that the pages name, and call real commands."""

import re
import shlex
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from mergeyard import __version__
from mergeyard.cli import app
from mergeyard.domain.config import Config, LandingMethod, MergeMethod, Mode
from mergeyard.domain.ids import PullRequestNumber, RunId, Sha, SubmissionId
from mergeyard.domain.runs import Member, Run, RunKind
from mergeyard.service import repo_config
from mergeyard.service.git_names import name_test_branch
from mergeyard.service.repo_config import RepositoryConfig, UnmatchedPolicy
from tests.deploy.files import read_yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FILES = sorted(EXAMPLES.rglob("*.yml"))
ADMINS = ROOT / "docs" / "admins"
CI = ADMINS / "ci.md"
TARGETS = ADMINS / "impacted-targets.md"

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


def recipe(heading: str) -> Any:
    """The YAML of the recipe below a heading of the CI page."""
    (text,) = re.findall(rf"^## {heading}\n.*?^```yaml\n(.*?)^```$", CI.read_text(), re.MULTILINE | re.DOTALL)
    return yaml.safe_load(text)


def commands() -> list[list[str]]:
    """Every call of `mergeyard` that a reader could copy from a page for admins or an example, split into words."""
    pages = [block for page in sorted(ADMINS.glob("*.md")) for block in blocks(page, "sh")]
    lines = [line for text in pages for line in re.findall(r"^mergeyard ([^\n]*)", join_lines(text), re.MULTILINE)]
    for file in FILES:
        lines += re.findall(r"(?<![\w-])(targets (?:set|from-paths)[^\n]*)", join_lines(file.read_text()))
    return [shlex.split(line.partition(" >> ")[0]) for line in lines]


def join_lines(text: str) -> str:
    """With every indented line appended to the line before it, except the items of a list."""
    return re.sub(r"\\?\n\s+(?!-\s)", " ", text)


def make_branch_name(kind: RunKind) -> str:
    stack = () if kind is RunKind.BASE else (Member(SubmissionId(1), PullRequestNumber(12), Sha("0" * 40)),)
    run = Run(
        id=RunId("018f5a3e-0000-7000-8000-000000000001"),
        kind=kind,
        base=Sha("0" * 40),
        stack=stack,
        tested_count=len(stack),
        required_statuses=("test",),
        merge_method=MergeMethod.MERGE_COMMIT,
        landing_method=LandingMethod.TESTED_COMMIT,
        timeout_ms=1,
    )
    return name_test_branch(run)


TEST_BRANCHES = [make_branch_name(kind) for kind in RunKind]
OTHER_BRANCHES = ["main", "topic/mergeyard/x", "mergeyards"]


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
    assert all(re.search(pattern, branch) for branch in TEST_BRANCHES)
    assert not any(re.search(pattern, branch) for branch in OTHER_BRANCHES)
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


def test_page_names_the_checks_that_the_examples_and_recipes_report():
    named = dict(re.findall(r"^\| ([\w ]+) \| \[.+?\) \| `([^`]+)`", CI.read_text(), re.MULTILINE))
    (github,) = GITHUB["jobs"]
    (gitlab,) = GITLAB.keys() - {"workflow"}
    (gitea,) = GITEA["jobs"]
    (circleci,) = recipe("CircleCI")["workflows"]["main"]["jobs"][0]
    assert named.pop("Buildkite").startswith("buildkite/")
    assert named.pop("Jenkins") == "continuous-integration/jenkins/branch"
    assert named == {
        "GitHub Actions": github,
        "GitLab CI": gitlab,
        "Gitea Actions": f"{GITEA['name']} / {gitea} (push)",
        "CircleCI": f"ci/circleci: {circleci}",
    }


def test_page_lists_the_name_of_every_kind_of_test_branch():
    named = re.findall(r"^\| `(mergeyard/[^`]+)` \|", CI.read_text(), re.MULTILINE)
    patterns = [re.escape(name).replace("<number>", r"\d+").replace("<run>", "[0-9a-f-]{36}") for name in named]
    assert len(patterns) == len(TEST_BRANCHES)
    for pattern in patterns:
        assert len([branch for branch in TEST_BRANCHES if re.fullmatch(pattern, branch)]) == 1


def test_recipes_run_for_every_test_branch_and_for_no_other():
    assert recipe("GitHub Actions")[True] == triggers(GITHUB)
    assert recipe("GitLab CI")["workflow"] == GITLAB["workflow"]
    (job,) = recipe("CircleCI")["workflows"]["main"]["jobs"][0].values()
    target, pattern = job["filters"]["branches"]["only"]
    assert target == "main"
    assert all(re.fullmatch(pattern.strip("/"), branch) for branch in TEST_BRANCHES)
    assert not any(re.fullmatch(pattern.strip("/"), branch) for branch in OTHER_BRANCHES)
    wildcards = re.findall(r"add `(mergeyard/\*)`|include `(mergeyard/\*)`", CI.read_text())
    assert len(wildcards) == 2  # Buildkite and Jenkins, where * also covers slashes
    assert all(fnmatchcase(branch, "mergeyard/*") for branch in TEST_BRANCHES)


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
    assert len(commands()) >= 14
    for words in commands():
        result = CliRunner().invoke(app, [*words, "--help"])
        assert result.exit_code == 0, (words, result.output)
