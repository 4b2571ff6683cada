"""The progress of the demo, and the verification of its results: in API responses, in git and in a clean checkout."""

import asyncio
import tomllib
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.process import build_environment, kill_and_wait, run_git
from mergeyard.adapters.host_plain.pull_requests import list_refs
from mergeyard.cli.demo.sample_repository import (
    QUEUE,
    SAMPLE_PULL_REQUESTS,
    TARGET_BRANCH,
    ExpectedOutcome,
    SamplePullRequest,
)
from mergeyard.client import AsyncClient, SubmittedPullRequest
from mergeyard.domain.states import PullRequestState, RunStatus

TEST_BRANCH_REF_PREFIX = "refs/heads/mergeyard"
CLEANUP_TIMEOUT_S = 30
"""Seconds until the last test branch is gone."""


STATES_UNDER_TEST = {PullRequestState.TESTING, PullRequestState.TESTS_PASSED, PullRequestState.PENDING_FAILURE}

RunGroup = tuple[SubmittedPullRequest, ...]
"""Submissions tested together by one run."""


class Progress(Struct, frozen=True):
    submissions: dict[int, SubmittedPullRequest]
    bisection_run_ids: frozenset[str] = frozenset()

    @property
    def concluded_count(self) -> int:
        return sum(submission.is_concluded for submission in self.submissions.values())

    @property
    def is_finished(self) -> bool:
        return self.concluded_count == len(SAMPLE_PULL_REQUESTS)

    @property
    def is_urgent_merged(self) -> bool:
        return any(submission.skip_the_line for submission in self.list_in_state(PullRequestState.MERGED))

    def list_in_state(self, state: PullRequestState) -> RunGroup:
        return tuple(submission for submission in self.submissions.values() if submission.state == state)

    def list_groups(self) -> list[RunGroup]:
        """Submissions under test: active batches in order, then those being bisected."""
        under_test = [submission for submission in self.submissions.values() if submission.state in STATES_UNDER_TEST]
        under_test.sort(key=lambda submission: submission.position or 0)
        return [
            tuple(group)
            for _, group in groupby(under_test, key=lambda submission: (submission.test_run_id, submission.state))
        ]

    def is_bisection(self, group: RunGroup) -> bool:
        return group[0].test_run_id in self.bisection_run_ids


class Finding(Struct, frozen=True):
    sentence: str
    differences: tuple[str, ...] = ()
    """Deviations; empty when the sentence is true."""


async def verify_all(progress: Progress, client: AsyncClient, repository: Path, folder: Path) -> AsyncIterator[Finding]:
    yield verify_outcomes(progress)
    yield await verify_main_branch(repository, folder / "checkout")
    yield await verify_landed_commits(progress, client, repository)
    yield await verify_no_test_branches(repository)


# Outcomes


def verify_outcomes(progress: Progress) -> Finding:
    differences = (
        f"#{number} should be {pull_request.expected}, not {get_outcome(progress, number)}"
        for number, pull_request in enumerate(SAMPLE_PULL_REQUESTS, start=1)
        if not has_expected_outcome(progress, number, pull_request)
    )
    return Finding(f"All {len(SAMPLE_PULL_REQUESTS)} pull requests have the expected outcome.", tuple(differences))


def has_expected_outcome(progress: Progress, number: int, pull_request: SamplePullRequest) -> bool:
    outcome = get_outcome(progress, number)
    if outcome == pull_request.expected or pull_request.alternative is None:
        return outcome == pull_request.expected
    swapped_outcomes = (SAMPLE_PULL_REQUESTS[pull_request.alternative - 1].expected, pull_request.expected)
    return (outcome, get_outcome(progress, pull_request.alternative)) == swapped_outcomes


def get_outcome(progress: Progress, number: int) -> ExpectedOutcome | None:
    submission = progress.submissions.get(number)
    return None if submission is None else ExpectedOutcome(submission.state, submission.reason.code)


# The main branch


async def verify_main_branch(repository: Path, checkout: Path) -> Finding:
    await run_command(
        "git", "clone", "--quiet", "--branch", TARGET_BRANCH, str(repository), str(checkout), folder=repository
    )
    checks: dict[str, str] = tomllib.loads((checkout / ".mergeyard.toml").read_text())["checks"]
    outputs = [(name, await run_command("sh", "-c", command, folder=checkout)) for name, command in checks.items()]
    failures = (f"{name} failed:\n{output}" for name, (code, output) in outputs if code != 0)
    passed = " and ".join(checks)
    return Finding(f"The main branch passes {passed} in a clean checkout.", tuple(failures))


async def run_command(*command: str, folder: Path) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, cwd=folder, env=build_environment()
    )
    try:
        output, _ = await process.communicate()
    finally:
        await kill_and_wait(process)
    return process.returncode, output.decode(errors="replace")


# Landed commits


async def verify_landed_commits(progress: Progress, client: AsyncClient, repository: Path) -> Finding:
    merged = progress.list_in_state(PullRequestState.MERGED)
    landed = await list_commits(repository, TARGET_BRANCH)
    *ours, _first = landed
    unknown_commits = [
        f"{sha} belongs to no submission" for sha in ours if sha not in {submission.merged_sha for submission in merged}
    ]
    untested = [
        reason
        for submission in merged
        if (reason := await find_untested_reason(submission, landed, client, repository))
    ]
    sentence = f"Each of the {len(merged)} merged commits has exactly the content that a run tested."
    return Finding(sentence, (*unknown_commits, *untested))


async def find_untested_reason(
    submission: SubmittedPullRequest, landed: dict[str, str], client: AsyncClient, repository: Path
) -> str:
    """Why the landed commit was not tested in this form; empty when it was."""
    if submission.merged_sha not in landed or submission.verified_by_test_run is None:
        return f"#{submission.pr_number} is reported as merged, but is not on the main branch"
    run = await client.get_run(QUEUE, submission.verified_by_test_run)
    tested = await list_commits(repository, run.test_branch_sha)
    if run.status != RunStatus.SUCCEEDED or landed[submission.merged_sha] not in tested.values():
        return f"#{submission.pr_number} merged as {submission.merged_sha}, which the run {run.id} did not test"
    if tested[run.test_branch_sha] not in landed.values():
        return f"#{submission.pr_number} merged without the rest of what the run {run.id} tested"
    return ""


async def list_commits(repository: Path, revision: str) -> dict[str, str]:
    """Its commits along first parents, newest first, each with its tree and its parents."""
    log_output = await run_git(repository, "log", "--first-parent", "--format=%H %T %P", "--end-of-options", revision)
    return dict(line.split(" ", 1) for line in log_output.decode().splitlines())


# Test branches


async def verify_no_test_branches(repository: Path) -> Finding:
    remaining = await list_refs(repository, TEST_BRANCH_REF_PREFIX)
    for _ in range(CLEANUP_TIMEOUT_S * 10):
        if not remaining:
            break
        await asyncio.sleep(0.1)
        remaining = await list_refs(repository, TEST_BRANCH_REF_PREFIX)
    return Finding("No test branch is left over.", tuple(f"{ref} is still there" for ref in remaining))
