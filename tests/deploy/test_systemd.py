"""The unit starts what is there, keeps its rights small, and leaves room for what checks need."""

import re

import pytest

from mergeyard.cli.server import SECONDS_TO_FINISH
from tests.deploy.files import DEPLOY, UNIT

LINES = [line for line in UNIT.splitlines() if line and line[0] not in "#["]


def value(name: str) -> str:
    (found,) = [line.partition("=")[2] for line in LINES if line.partition("=")[0] == name]
    return found


def test_every_line_says_something_once():
    names = [line.partition("=")[0] for line in LINES]
    assert all(re.fullmatch(r"[A-Z]\w+=.*", line) for line in LINES)
    assert len(names) == len(set(names))


def test_it_runs_as_a_user_that_is_made_for_it():
    users = (DEPLOY / "systemd" / "mergeyard.sysusers.conf").read_text()
    assert re.findall(r"^u +(\w+)", users, re.MULTILINE) == [value("User")] == [value("Group")]


def test_it_is_started_at_once_and_again_when_it_fails():
    assert value("Type") == "exec"
    assert value("Restart") == "on-failure"
    assert value("ExecStart").endswith("/mergeyard serve")


def test_it_has_more_time_to_end_than_it_takes():
    assert int(value("TimeoutStopSec")) >= SECONDS_TO_FINISH + 10


def test_it_leaves_memory_to_the_machine():
    assert value("MemoryMax").endswith("%")


def test_what_it_keeps_is_where_it_may_write():
    assert value("StateDirectory") == "mergeyard"
    assert "MERGEYARD_DATA_DIR=%S/mergeyard" in value("Environment")


@pytest.mark.parametrize(
    "line",
    ["NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "CapabilityBoundingSet="],
)
def test_it_is_shut_in(line: str):
    assert line in LINES


@pytest.mark.parametrize("name", ["MemoryDenyWriteExecute", "ProcSubset", "PrivateUsers"])
def test_what_would_break_the_checks_of_repositories_is_left_out_and_said_so(name: str):
    assert not any(line.startswith(f"{name}=") for line in LINES)
    assert name in UNIT
