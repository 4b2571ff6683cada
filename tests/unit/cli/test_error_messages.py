"""Messages of the server name options instead of the API's members, and hints name the command that helps."""

import re
from typing import Any

import pytest
import typer
from msgspec import convert
from typer.main import get_group

from mergeyard.cli import app
from mergeyard.cli.output import ExitCode
from mergeyard.cli.session import (
    ERROR_HINTS,
    describe_interrupted_wait,
    exit_on_client_errors,
    translate_error,
)
from mergeyard.client import MergeyardError, SubmittedPullRequest
from mergeyard.client.transport import Problem
from mergeyard.service.errors import Code
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
        ("/context", "the name of the check"),
        ("/batchingMinSize", "--batching-min-size"),
        ("/requiredStatuses/0", "--required-statuses"),
    ],
)
def test_a_member_is_named_as_its_option(pointer: str, option: str):
    detail = f"`{pointer}`: expected 40 hex digits."
    assert translated(detail, (pointer, "expected 40 hex digits")) == [f"{option}: expected 40 hex digits."]


def test_every_invalid_member_is_named():
    issues = (("/concurrency", "is too large"), ("/mode", "is unknown"))
    assert translated("The request is not valid.", *issues) == [
        "The request is not valid.",
        "  --concurrency: is too large",
        "  --mode: is unknown",
    ]


def test_hints_name_commands_that_exist():
    for hint in ERROR_HINTS.values():
        for words in re.findall(r"`mergeyard ([a-z ]+)", hint):
            found: Any = get_group(app)
            for name in words.split():
                found = found.commands[name]


def test_hints_are_for_codes_that_exist():
    assert ERROR_HINTS.keys() <= set(Code)


@pytest.mark.parametrize(
    ("status", "exit_code"), [(401, ExitCode.NOT_ALLOWED), (403, ExitCode.NOT_ALLOWED), (409, ExitCode.REFUSED)]
)
def test_a_token_that_is_not_allowed_has_its_own_exit_code(
    capsys: pytest.CaptureFixture[str], status: int, exit_code: ExitCode
):
    problem = a_problem("invalid_token", retryable=False) | {"status": status, "detail": "No."}
    with pytest.raises(typer.Exit) as ended, exit_on_client_errors(lambda: "https://queue.example.com"):
        raise MergeyardError(convert(problem, Problem))
    assert ended.value.exit_code == exit_code
    error, hint = capsys.readouterr().err.splitlines()
    assert error.startswith("error: No. (invalid_token, request ")
    assert hint.startswith("hint: Get a valid token and sign in with `mergeyard login URL`")


def test_an_interrupted_wait_says_where_the_pull_request_is():
    def waited(**members: Any) -> str:
        return describe_interrupted_wait(3, convert(SUBMITTED | members, SubmittedPullRequest))

    again = "`mergeyard status 3 --wait` waits again."
    assert waited(position=8) == f"Stopped waiting; #3 stays queued (position 8). {again}"
    assert waited(position=None) == f"Stopped waiting; #3 stays in the queue (not ready). {again}"
    assert describe_interrupted_wait(3, None) == f"Stopped waiting for #3. {again}"
