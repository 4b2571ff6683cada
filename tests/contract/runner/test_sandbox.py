"""What a command can and cannot do in a bubblewrap sandbox, tested with real commands."""

import asyncio
import os
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from mergeyard.adapters.runner_local.process import Limits, Sandbox
from mergeyard.domain.ids import RunId
from mergeyard.domain.pull_requests import StatusState
from tests.contract.runner.environment import RunnerEnvironment, final_results, next_report
from tests.contract.runner.test_runner import DETACHED, PASSED, RUNNING
from tests.support.asynchronous import asynchronous
from tests.support.sandbox import sandbox_problem
from tests.support.temporary_files import folder_on_disk

ONE = RunId("run-1")
needs_sandbox = pytest.mark.skipif(sandbox_problem() is not None, reason=f"no sandbox here: {sandbox_problem()}")


@pytest.fixture
def env() -> Generator[RunnerEnvironment]:
    with folder_on_disk() as folder:
        env = RunnerEnvironment(folder)
        env.sandbox = Sandbox()
        yield env


async def output_of(env: RunnerEnvironment, command: str) -> str:
    async with env.runner() as runner:
        await runner.start(env.job(unit=command))
        assert await final_results(runner) == {"unit": PASSED}, await runner.output(ONE, "unit")
        return (await runner.output(ONE, "unit") or b"").decode()


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_writes_into_its_checkout_its_home_and_its_own_tmp(env: RunnerEnvironment):
    output = await output_of(env, "cat greeting.txt; touch new ~/new /tmp/new && ls; git --version")
    assert output.startswith("hello\ndeep\ngreeting.txt\nnew\ngit version")
    assert not Path("/tmp/new").exists()
    assert env.checkouts() == []


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_sees_no_other_file(env: RunnerEnvironment):
    secret = env.runs / "secret"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("hunter2")
    hidden = [secret, env.origin.path / "HEAD", Path(__file__), Path("/etc/shadow"), Path("/root"), Path("/run")]
    await output_of(env, "".join(f"test ! -e {path} || exit 1\n" for path in hidden))


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_changes_nothing_of_the_system(env: RunnerEnvironment):
    paths = ["/usr/new", "/etc/new", "/new", "/dev/new", "/home/new", "/var/new"]
    command = "".join(f"touch {path} 2>&- && exit 1\n" for path in paths)
    await output_of(env, f"{command} touch {env.runs}/new; true")
    assert not (env.runs / "new").exists()


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_sees_no_process_outside(env: RunnerEnvironment):
    numbers = await output_of(env, f"ls /proc | grep '^[0-9]' | wc -l; test ! -e /proc/{os.getpid()}/environ")
    assert int(numbers) < 10
    with subprocess.Popen(["sleep", "1000"]) as outside:
        try:
            await output_of(env, f"kill -9 {outside.pid} 2>&-; kill -9 -- -1 & true")
            assert outside.poll() is None
        finally:
            outside.kill()


REACHES = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"


@needs_sandbox
@pytest.mark.parametrize("network", [False, True])
@asynchronous
async def test_a_sandboxed_command_has_a_network_only_if_that_is_allowed(env: RunnerEnvironment, network: bool):
    env.sandbox = Sandbox(network=network)
    with socket.create_server(("127.0.0.1", 0)) as server:
        reaches = REACHES.format(port=server.getsockname()[1])
        await output_of(env, reaches if network else f"! {reaches} 2>&-")


@needs_sandbox
@asynchronous
async def test_further_folders_can_be_read_but_what_is_hidden_in_them_stays_hidden(env: RunnerEnvironment):
    tools = env.folder / "tools"
    (tools / "data").mkdir(parents=True)
    (tools / "tool").write_text("a tool")
    (tools / "data" / "secret").write_text("hunter2")
    env.runs = tools / "data" / "checks"
    env.sandbox = Sandbox(readable=(tools,), hidden=(tools / "data",))
    command = f"cat {tools}/tool; ls -A {tools}/data; touch {tools}/x {tools}/data/x 2>&- || touch ok; ls ok"
    assert await output_of(env, command) == "a toolchecks\nok\n"
    assert sorted(path.name for path in tools.iterdir()) == ["data", "tool"]


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_has_no_namespaces_of_its_own_where_bubblewrap_can_forbid_them(
    env: RunnerEnvironment,
):
    env.sandbox = Sandbox().strictest(env.folder)
    if env.sandbox.nested_namespaces:
        pytest.skip("bubblewrap cannot forbid namespaces here: it needs version 0.8, and not as a setuid program")
    await output_of(env, "! unshare --user --map-root-user --mount true 2>&-")


def test_a_bubblewrap_that_cannot_forbid_namespaces_is_used_without_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\ncase " $* " in *" --disable-userns "*) echo "Unknown option" >&2; exit 1;; esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Sandbox().find_problem(tmp_path / "checks") is None
    assert Sandbox().strictest(tmp_path / "checks") == Sandbox()


@needs_sandbox
@asynchronous
async def test_detached_processes_end_with_a_sandboxed_command_even_if_its_supervisor_is_killed(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit=f"{DETACHED} sleep 1000"))
        assert await next_report(runner) == ("unit", *RUNNING)
        while not await runner.output(ONE, "unit"):  # the detached process has begun
            await asyncio.sleep(0)
        supervisor = await lock_holder(env)
        os.kill(supervisor, 9)
        state, description = (await final_results(runner))["unit"]
        assert (state, "was killed" in description) == (StatusState.ERROR, True)
        assert processes_in(env) == []


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_that_breaches_a_limit_is_ended_and_fails(env: RunnerEnvironment):
    env.limits = Limits(max_bytes=8 * 2**20, max_processes=50)
    async with env.runner() as runner:
        many = "for i in $(seq 100); do sleep 1000 & done; wait"
        await runner.start(env.job(many=many, large="head -c 9000000 /dev/zero > /tmp/large"))
        found = await final_results(runner, 2)
        assert [found[name][0] for name in ("many", "large")] == [StatusState.FAILURE] * 2
        assert "runner_max_processes" in found["many"][1]
        assert "runner_max_disk_mb" in found["large"][1]


@needs_sandbox
@asynchronous
async def test_a_sandboxed_command_that_takes_too_long_can_clean_up_and_is_ended(env: RunnerEnvironment):
    async with env.runner() as runner:
        command = "trap 'echo cleaned up; exit 1' TERM; echo ready; while :; do sleep 0.05; done"
        await runner.start(env.job(unit=command, timeout=3000))
        assert await final_results(runner) == {"unit": (StatusState.ERROR, "ran longer than 3 s and was ended")}
        assert b"cleaned up\n" in (await runner.output(ONE, "unit") or b"")


def test_a_machine_without_bubblewrap_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Sandbox().find_problem(tmp_path) == "bwrap is not installed"


def test_a_machine_that_forbids_namespaces_says_what_bubblewrap_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Sandbox().find_problem(tmp_path / "checks") == "bwrap: No permissions to create new namespace"
    assert list((tmp_path / "checks").iterdir()) == []


async def lock_holder(env: RunnerEnvironment) -> int:
    """The supervisor: the parent of the process that makes the sandbox."""
    while not (found := processes_in(env)):
        await asyncio.sleep(0)
    return int(Path(f"/proc/{min(found)}/stat").read_text().rpartition(")")[2].split()[1])


def processes_in(env: RunnerEnvironment) -> list[int]:
    """The processes of sandboxes that were made for this environment."""
    found = list[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text() == "bwrap\n" and os.fsencode(env.runs) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found
