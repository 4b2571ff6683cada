"""Messages of the server name commands and options instead of the API's operations and members."""

from typing import Any

import pytest
from msgspec import convert
from typer.main import get_group

from mergeyard.api.routes import TABLE
from mergeyard.cli import app
from mergeyard.cli.session import COMMAND_BY_OPERATION, describe_interrupted_wait, translate_error
from mergeyard.client import MergeyardError, SubmittedPullRequest
from mergeyard.client.transport import Problem
from tests.support.api_examples import SUBMITTED, a_problem


def translated(detail: str, *issues: tuple[str, str], code: str = "invalid_request") -> list[str]:
    errors = [{"pointer": pointer, "message": message} for pointer, message in issues]
    problem = a_problem(code, retryable=False) | {"detail": detail, "errors": errors}
    return translate_error(MergeyardError(convert(problem, Problem)))


@pytest.mark.parametrize(
    ("pointer", "option"),
    [
        ("/pr/sha", "--sha"),
        ("/pr/number", "the pull request number"),
        ("/repo/owner", "--repo"),
        ("/targetBranch", "--branch"),
        ("/impactedTargets/3", "the targets"),
        ("/stateReason", "--reason"),
        ("/batchingMinSize", "--batching-min-size"),
        ("/requiredStatuses/0", "--required-statuses"),
    ],
)
def test_a_member_is_named_as_its_option(pointer: str, option: str):
    detail = f"`{pointer}`: expected 40 hex digits. Correct it and send the request again."
    assert translated(detail, (pointer, "expected 40 hex digits")) == [f"{option}: expected 40 hex digits."]


def test_every_invalid_member_is_named():
    issues = (("/concurrency", "is too large"), ("/mode", "is unknown"))
    assert translated("The request is not valid.", *issues) == [
        "The request is not valid.",
        "  --concurrency: is too large",
        "  --mode: is unknown",
    ]


@pytest.mark.parametrize(
    ("detail", "message"),
    [
        ("There is none: create it with createQueue.", "There is none: create it with `mergeyard queue create`."),
        ("It exists: change it with `updateQueue`.", "It exists: change it with `mergeyard queue update`."),
        ("Your branch recreateQueues is fine.", "Your branch recreateQueues is fine."),
    ],
)
def test_an_operation_is_named_as_its_command(detail: str, message: str):
    assert translated(detail) == [message]


def test_operations_and_commands_exist():
    assert COMMAND_BY_OPERATION.keys() <= TABLE.keys()
    for command in COMMAND_BY_OPERATION.values():
        name, *subcommands = command.split()
        found: Any = get_group(app).commands[name]
        assert all(each in found.commands for each in subcommands), command


def test_a_missing_run_is_explained_without_members_of_the_api():
    detail = "The queue has no test run 7: see `testRunId` of a submitted pull request."
    assert translated(detail, code="test_run_not_found") == [
        "The queue has no test run 7.",
        "`mergeyard runs` lists the latest ones.",
    ]


def test_an_interrupted_wait_says_where_the_pull_request_is():
    def waited(**members: Any) -> str:
        return describe_interrupted_wait(3, convert(SUBMITTED | members, SubmittedPullRequest))

    again = "`mergeyard status 3 --wait` waits again."
    assert waited(position=8) == f"Stopped waiting; #3 stays queued (position 8). {again}"
    assert waited(position=None) == f"Stopped waiting; #3 stays in the queue (not ready). {again}"
    assert describe_interrupted_wait(3, None) == f"Stopped waiting for #3. {again}"
