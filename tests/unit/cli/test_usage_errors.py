"""Usage errors are reported before any request is sent, with their own exit code."""

import pytest

from tests.support.terminal import CommandLine

UNREACHABLE_URL = "http://127.0.0.1:9"
QUEUE = ("--repo", "git.local/acme/app", "--branch", "main")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (("status",), "hint: Pass the number of a pull request, such as 12."),
        (("targets", "set", "a"), "hint: Pass a number with --pr, such as --pr 12."),
        (("list", "--state", "green"), "green is not a state: write one of not-ready, queued, testing"),
        (("check", "report", "unit", "--sha", "1", "--state", "green"), "'green' is not one of 'success'"),
        (("queue", "show", "--queue", "a/b/c:d", "--branch", "main"), "omit --repo and --branch"),
        (("queue", "show", "--url", UNREACHABLE_URL, "--server", "work"), "--url and --server both choose a server"),
        (("pr", "list"), "`mergeyard list` lists the pull requests of a queue"),
        (("status", "x"), "Invalid value for 'N': expected a pull request number, such as 12."),
        (("submit", "0"), "expected a pull request number, such as 12."),
        (("cancel", "##1"), "expected a pull request number, such as 12."),
        (("restart", "2147483648"), "expected a pull request number, such as 12."),
        (("targets", "set", "--pr", "twelve", "a"), "expected a pull request number, such as 12."),
        (("submit", "1", "--priority", "soon"), "soon is not a priority: write urgent"),
        (("queue", "update", "--concurency", "3"), "--concurrency"),
        (("queue", "update", "--concurrency", "0"), "from 1 to 1000"),
        (("queue", "update", "--batch", "maybe"), "neither on nor off"),
        (("queue", "update"), "hint: Pass a setting, such as --concurrency 8."),
        (("queue", "create"), "--repo host/owner/name --branch main"),
        (("queue", "show", "--repo", "app"), "write --repo host/owner/name"),
        (("queue", "show", "--queue", "git.local/acme/app"), "write --queue host/owner/name:branch"),
        (("queue", "show", "--queue", "app:main"), "write --repo host/owner/name"),
        (("runs", "--since", "soon"), "write 30m, 12h"),
        (("statsu", "1"), "status"),
        (("queue", "show", "--url", "queue.example.com"), "write it as https://queue.example.com"),
    ],
    ids=str,
)
def test_a_usage_error_is_reported_with_its_own_exit_code(arguments: tuple[str, ...], advice: str):
    message = CommandLine(UNREACHABLE_URL, "my_token").run_failing(64, *arguments)
    assert message.startswith("error: ")
    assert advice in message.replace("\n", " ")


def test_a_usage_error_of_an_option_names_the_help_of_the_command():
    message = CommandLine("", "").run_failing(64, "queue", "pause", "--rason", "x")
    assert message.endswith("\nhint: See `mergeyard queue pause --help`.\n")


def test_a_missing_server_or_token_is_explained():
    terminal = CommandLine(UNREACHABLE_URL, "my_token")
    terminal.environment["MERGEYARD_TOKEN"] = None
    assert f"hint: Sign in with `mergeyard login {UNREACHABLE_URL}`" in terminal.run_failing(64, "queue", "list")
    terminal.environment["MERGEYARD_URL"] = None
    assert "hint: Sign in with `mergeyard login https://queue.example.com`, or set MERGEYARD_URL." in (
        terminal.run_failing(64, "queue", "list")
    )


def test_an_unsupported_proxy_is_named():
    terminal = CommandLine(UNREACHABLE_URL, "my_token")
    terminal.environment["ALL_PROXY"] = "socks5://127.0.0.1:9"
    assert "Unset ALL_PROXY" in terminal.run_failing(64, "status", "5", "--wait", *QUEUE)
