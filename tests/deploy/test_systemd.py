"""The systemd unit starts an existing command, has few privileges, and allows what local checks need."""

import re

import pytest

from mergeyard.cli.server import SHUTDOWN_TIMEOUT_S
from tests.deploy.files import DEPLOY, UNIT

LINES = [line for line in UNIT.splitlines() if line and line[0] not in "#["]


def value(name: str) -> str:
    (found,) = [line.partition("=")[2] for line in LINES if line.partition("=")[0] == name]
    return found


def test_every_directive_is_set_once():
    names = [line.partition("=")[0] for line in LINES]
    assert all(re.fullmatch(r"[A-Z]\w+=.*", line) for line in LINES)
    assert len(names) == len(set(names))


def test_unit_runs_as_its_own_user():
    users = (DEPLOY / "systemd" / "mergeyard.sysusers.conf").read_text()
    assert re.findall(r"^u +(\w+)", users, re.MULTILINE) == [value("User")] == [value("Group")]


def test_unit_is_restarted_when_it_fails():
    assert value("Type") == "exec"
    assert value("Restart") == "on-failure"
    assert value("ExecStart").endswith("/mergeyard serve")


def test_stop_timeout_covers_the_shutdown():
    assert int(value("TimeoutStopSec")) >= SHUTDOWN_TIMEOUT_S + 10


def test_memory_limit_is_a_share_of_the_machine():
    assert value("MemoryMax").endswith("%")


def test_data_directory_is_the_writable_state_directory():
    assert value("StateDirectory") == "mergeyard"
    assert "MERGEYARD_DATA_DIR=%S/mergeyard" in value("Environment")


@pytest.mark.parametrize(
    "line",
    ["NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes", "PrivateTmp=yes", "CapabilityBoundingSet="],
)
def test_unit_is_sandboxed(line: str):
    assert line in LINES


@pytest.mark.parametrize("name", ["MemoryDenyWriteExecute", "ProcSubset", "PrivateUsers"])
def test_directive_that_would_break_local_checks_is_left_out_and_explained(name: str):
    assert not any(line.startswith(f"{name}=") for line in LINES)
    assert name in UNIT
