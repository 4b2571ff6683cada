"""What the service can expect of a runner: real commands in clean checkouts that leave nothing behind."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace

from mergeyard.adapters.runner_local.process import Limits
from mergeyard.domain.ids import RunId
from mergeyard.domain.pull_requests import StatusState
from mergeyard.domain.timestamps import Instant
from tests.contract.runner.environment import BROKEN, INVALID, OTHER, RunnerEnvironment, final_results, next_report
from tests.support.asynchronous import asynchronous

ONE = RunId("run-1")
PASSED = (StatusState.SUCCESS, "passed")
RUNNING = (StatusState.PENDING, "running")
KNOWN = {"PATH", "HOME", "LANG", "CI", "MERGEYARD_RUN", "MERGEYARD_COMMIT"}
SET_BY_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}


def is_alive(number: int) -> bool:
    """Whether the process still runs; a zombie does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


# How commands end


@asynchronous
async def test_a_command_reports_pending_at_its_start_and_then_its_result(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="true"))
        assert await next_report(runner) == ("unit", *RUNNING)
        assert await next_report(runner) == ("unit", *PASSED)


@asynchronous
async def test_a_job_that_is_started_again_while_it_is_being_stopped_runs_again(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="sleep 1000"))
        assert await next_report(runner) == ("unit", *RUNNING)
        stopping = asyncio.create_task(runner.stop(ONE))
        await asyncio.sleep(0)
        await runner.start(env.job(unit="true"))
        await stopping
        assert await final_results(runner) == {"unit": PASSED}


@asynchronous
async def test_a_result_names_the_run_and_the_commit(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="true"))
        result = await runner.next_result()
        assert (result.run, result.commit) == (ONE, env.commit)


@pytest.mark.parametrize(
    ("command", "message"),
    [("exit 3", "exit code 3"), ("no-such-command", "exit code 127"), ("kill -9 $$", "signal 9")],
)
@asynchronous
async def test_any_other_exit_is_a_failure_with_its_cause(env: RunnerEnvironment, command: str, message: str):
    async with env.runner() as runner:
        await runner.start(env.job(unit=command))
        state, description = (await final_results(runner))["unit"]
        assert state is StatusState.FAILURE
        assert message in description


@asynchronous
async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(env: RunnerEnvironment):
    async with env.runner() as runner:
        command = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait"
        await runner.start(env.job(unit=command, timeout=500))
        assert await final_results(runner) == {"unit": (StatusState.ERROR, "ran longer than 0.5 s and was ended")}
        output = await runner.output(ONE, "unit")
        assert output
        assert [is_alive(int(number)) for number in output.split()] == [False, False]


@pytest.mark.long
@asynchronous
async def test_a_command_that_ignores_sigterm_is_killed(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="trap '' TERM; echo $$; while :; do sleep 1; done", timeout=300))
        assert (await final_results(runner))["unit"][0] is StatusState.ERROR
        output = await runner.output(ONE, "unit")
        assert output
        assert not is_alive(int(output))


@asynchronous
async def test_what_a_command_leaves_running_is_ended_with_it(env: RunnerEnvironment):
    async with env.runner() as runner:
        command = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; env -i sleep 1000 & echo $!"
        await runner.start(env.job(unit=command))
        assert await final_results(runner) == {"unit": PASSED}
        output = await runner.output(ONE, "unit")
        assert output
        assert [is_alive(int(number)) for number in output.split()] == [False, False, False]


DETACHED = "setsid env -i sh -c '(setsid env -i sh -c \"echo \\$\\$; exec sleep 1000\" &)' &"
"""Forked twice, in a session of its own, and without anything in its environment."""


@asynchronous
async def test_a_process_that_detached_itself_and_cleared_its_environment_ends_with_the_command(env: RunnerEnvironment):
    gate = env.gate()
    async with env.runner() as runner:
        await runner.start(env.job(unit=f"{DETACHED} {gate.waiting}"))
        while not (output := await runner.output(ONE, "unit") or b"").endswith(b"\n"):
            await asyncio.sleep(0)
        assert is_alive(int(output))
        gate.open()
        assert await final_results(runner) == {"unit": PASSED}
        assert not is_alive(int(output))


@asynchronous
async def test_processes_that_keep_forking_end_with_the_command(env: RunnerEnvironment):
    fork = "echo x >> forks; setsid sh fork.sh &"
    async with env.runner() as runner:
        command = f"echo '{fork}' > fork.sh; sh fork.sh; while [ $(wc -l < forks) -lt 50 ]; do :; done"
        await runner.start(env.job(unit=command))
        assert await final_results(runner) == {"unit": PASSED}
        assert env.checkouts() == []


@asynchronous
async def test_a_command_that_kills_its_supervisor_fails(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="kill -9 $PPID; exec sleep 1000"))
        assert await final_results(runner) == {
            "unit": (StatusState.ERROR, "could not be run: the process that supervises the command was killed")
        }


# Limits


@asynchronous
async def test_a_command_with_too_many_processes_is_ended_and_fails(env: RunnerEnvironment):
    env.limits = Limits(max_processes=20)
    message = "it had more than 20 processes at once (runner_max_processes)"
    async with env.runner() as runner:
        await runner.start(env.job(unit="for i in $(seq 50); do setsid sleep 1000 & done; echo started; wait"))
        assert await final_results(runner) == {"unit": (StatusState.FAILURE, f"was ended: {message}")}
        assert await runner.output(ONE, "unit") == f"started\n\n[the check was ended: {message}]\n".encode()


@pytest.mark.parametrize(
    "command",
    [
        "head -c 9000000 /dev/zero > large",
        "i=0; while :; do i=$((i + 1)); head -c 3000000 /dev/zero > ~/$i; sleep 0.1; done",
    ],
    ids=["one file", "many files"],
)
@asynchronous
async def test_a_command_whose_files_take_too_much_room_is_ended_and_fails(env: RunnerEnvironment, command: str):
    env.limits = Limits(max_bytes=8 * 2**20)
    message = "its files took more than 8 MiB of the disk (runner_max_disk_mb)"
    async with env.runner() as runner:
        await runner.start(env.job(unit=command))
        assert await final_results(runner) == {"unit": (StatusState.FAILURE, f"was ended: {message}")}
        assert f"[the check was ended: {message}]".encode() in (await runner.output(ONE, "unit") or b"")
        assert env.checkouts() == []


@asynchronous
async def test_a_command_leaves_no_core_dump(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="ulimit -c"))
        assert await final_results(runner) == {"unit": PASSED}
        assert await runner.output(ONE, "unit") == b"0\n"


# Where commands run


@asynchronous
async def test_every_command_has_a_clean_checkout_of_its_own(env: RunnerEnvironment):
    seeing = "cat greeting.txt deep/er.txt; ls -A | sort; rm greeting.txt; touch litter; pwd"
    async with env.runner(limit=1) as runner:
        await runner.start(env.job(first=seeing, second=seeing))
        assert await final_results(runner, 2) == {"first": PASSED, "second": PASSED}
        first, second = (await runner.output(ONE, "first"), await runner.output(ONE, "second"))
        assert first
        assert second
        assert first != second
        assert first.splitlines()[:-1] == second.splitlines()[:-1] == [b"hello", b"xdeep", b"greeting.txt"]


@asynchronous
async def test_nothing_of_a_checkout_stays_not_even_what_is_protected(env: RunnerEnvironment):
    async with env.runner() as runner:
        outside = env.folder / "outside"
        outside.mkdir(mode=0o755)
        command = f"mkdir -p $HOME/a/b && touch $HOME/a/b/c && ln -s {outside} $HOME/a/link && chmod -R a-rwx $HOME/a/b"
        await runner.start(env.job(unit=command))
        assert await final_results(runner) == {"unit": PASSED}
        assert env.checkouts() == []
        assert outside.stat().st_mode & 0o777 == 0o755


@asynchronous
async def test_a_command_knows_only_what_it_should(env: RunnerEnvironment, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERGEYARD_TOKEN", "secret")
    async with env.runner() as runner:
        await runner.start(env.job(unit="/usr/bin/env -0 | tr '\\0' '\\n'; test -z \"$(ls -A \"$HOME\")\""))
        assert await final_results(runner) == {"unit": PASSED}
        output = await runner.output(ONE, "unit")
        assert output
        known = dict(line.split("=", 1) for line in output.decode().splitlines())
        assert known.keys() - SET_BY_THE_SHELL == KNOWN
        assert (known["CI"], known["MERGEYARD_RUN"], known["MERGEYARD_COMMIT"]) == ("true", ONE, env.commit)
        assert known["HOME"] != os.environ["HOME"]


@asynchronous
async def test_a_command_reads_nothing_from_standard_input(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="cat"))
        assert await final_results(runner) == {"unit": PASSED}


@asynchronous
async def test_a_checkout_error_of_the_machine_is_retried_and_fails_no_check(env: RunnerEnvironment):
    env.failing_checkouts = 2
    async with env.runner() as runner:
        await runner.start(env.job(unit="cat greeting.txt"))
        assert await final_results(runner) == {"unit": PASSED}


@asynchronous
async def test_a_commit_that_git_refuses_to_check_out_fails_its_check_at_once(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(repo=INVALID, unit="true"))
        message = "the commit cannot be checked out: error: invalid path '.git/config'"
        assert await next_report(runner) == ("unit", StatusState.FAILURE, message)


# Scheduling


@asynchronous
async def test_a_repository_whose_checks_cannot_start_does_not_hold_up_others(env: RunnerEnvironment):
    async with env.runner(limit=1) as runner:
        await runner.start(env.job("run-1", repo=BROKEN, broken="true"))
        assert await next_report(runner) == ("broken", StatusState.PENDING, "cannot be run yet: the mirror is damaged")
        await runner.start(env.job("run-2", unit="true"))
        async with asyncio.timeout(30):
            assert await final_results(runner) == {"unit": PASSED}


@asynchronous
async def test_a_free_slot_goes_to_the_repository_with_the_fewest_running_commands(env: RunnerEnvironment):
    gates = {name: env.gate() for name in ("a", "b", "c", "d", "other")}
    waiting = {name: gate.waiting for name, gate in gates.items()}
    async with env.runner(limit=2) as runner:
        first = {name: waiting[name] for name in ("a", "b", "c", "d")}
        await runner.start(replace(env.job("run-1"), commands=first))
        assert {await next_report(runner), await next_report(runner)} == {("a", *RUNNING), ("b", *RUNNING)}
        await runner.start(env.job("run-2", repo=OTHER, other=waiting["other"]))
        gates["a"].open()
        assert [await next_report(runner), await next_report(runner)] == [("a", *PASSED), ("other", *RUNNING)]
        gates["b"].open()
        assert [await next_report(runner), await next_report(runner)] == [("b", *PASSED), ("c", *RUNNING)]


@asynchronous
async def test_a_stopped_run_that_waits_gives_up_its_place_in_the_queue(env: RunnerEnvironment):
    gate = env.gate()
    async with env.runner(limit=1) as runner:
        await runner.start(env.job("run-1", unit=gate.waiting))
        assert await next_report(runner) == ("unit", *RUNNING)
        await runner.start(env.job("run-2", repo=OTHER, waits="true"))
        await runner.start(env.job("run-3", late="true"))
        await runner.stop(RunId("run-2"))
        gate.open()
        assert (await final_results(runner, 2)).keys() == {"unit", "late"}


@asynchronous
async def test_the_number_of_running_commands_is_limited_and_they_start_in_order(env: RunnerEnvironment):
    gates = [env.gate() for _ in range(4)]
    async with env.runner(limit=2) as runner:
        await runner.start(env.job("run-1", a=gates[0].waiting, b=gates[1].waiting, c=gates[2].waiting))
        await runner.start(env.job("run-2", d=gates[3].waiting))
        assert {await next_report(runner), await next_report(runner)} == {("a", *RUNNING), ("b", *RUNNING)}
        assert len(env.checkouts()) == 2
        gates[1].open()
        assert [await next_report(runner), await next_report(runner)] == [("b", *PASSED), ("c", *RUNNING)]
        gates[0].open()
        assert [await next_report(runner), await next_report(runner)] == [("a", *PASSED), ("d", *RUNNING)]
        gates[2].open()
        gates[3].open()
        assert (await final_results(runner, 2)).keys() == {"c", "d"}


@asynchronous
async def test_a_job_that_is_already_running_is_not_started_again(env: RunnerEnvironment):
    gate = env.gate()
    async with env.runner() as runner:
        for _ in range(3):
            await runner.start(env.job(unit=gate.waiting))
        assert runner.active_run_ids() == {ONE}
        assert await next_report(runner) == ("unit", *RUNNING)
        gate.open()
        assert await next_report(runner) == ("unit", *PASSED)
        await runner.start(env.job(unit="false"))
        await runner.start(env.job("run-2", other="true"))
        assert await next_report(runner) == ("other", *RUNNING)


@asynchronous
async def test_a_run_is_running_until_its_last_command_ended(env: RunnerEnvironment):
    gate = env.gate()
    async with env.runner() as runner:
        assert runner.active_run_ids() == frozenset()
        await runner.start(env.job(quick="true", slow=gate.waiting))
        assert (await final_results(runner)).keys() == {"quick"}
        assert runner.active_run_ids() == {ONE}
        gate.open()
        await final_results(runner)
        assert runner.active_run_ids() == frozenset()


# Stopping


@asynchronous
async def test_a_stopped_run_ends_its_commands_and_reports_nothing_more(env: RunnerEnvironment):
    async with env.runner(limit=1) as runner:
        await runner.start(env.job(unit="echo $$; sleep 1000 & echo $!; wait", late="true"))
        assert await next_report(runner) == ("unit", *RUNNING)
        await runner.stop(ONE)
        assert runner.active_run_ids() == frozenset()
        assert env.checkouts() == []
        output = await runner.output(ONE, "unit")
        assert [number for number in (output or b"").split() if is_alive(int(number))] == []
        await runner.start(env.job("run-2", other="true"))
        assert await next_report(runner) == ("other", *RUNNING)


@asynchronous
async def test_unread_results_of_a_stopped_run_are_dropped(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="true"))
        while runner.active_run_ids():
            await asyncio.sleep(0)
        await runner.stop(ONE)
        await runner.start(env.job("run-2", other="true"))
        assert await next_report(runner) == ("other", *RUNNING)


@asynchronous
async def test_a_stopped_run_can_be_started_again_and_an_unknown_one_stopped(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.stop(RunId("unknown"))
        await runner.start(env.job(unit="sleep 1000"))
        await runner.stop(ONE)
        await runner.stop(ONE)
        await runner.start(env.job(unit="true"))
        assert await final_results(runner) == {"unit": PASSED}


# Output


@asynchronous
async def test_output_is_kept_with_errors_in_it_and_can_be_read_while_it_is_written(env: RunnerEnvironment):
    gate = env.gate()
    async with env.runner() as runner:
        await runner.start(env.job(unit=f"echo out; echo err >&2; {gate.waiting}; echo end"))
        while await runner.output(ONE, "unit") != b"out\nerr\n":
            await asyncio.sleep(0)
        gate.open()
        assert await final_results(runner) == {"unit": PASSED}
        assert await runner.output(ONE, "unit") == b"out\nerr\nend\n"
        await runner.stop(ONE)
        assert await runner.output(ONE, "unit") == b"out\nerr\nend\n"


@asynchronous
async def test_a_command_that_never_ran_has_no_output(env: RunnerEnvironment):
    async with env.runner() as runner:
        assert await runner.output(ONE, "unit") is None
        assert await runner.output(RunId("../.."), "../../app.git/HEAD") is None


@asynchronous
async def test_output_beyond_the_limit_is_dropped_with_a_note_and_does_not_fail_the_check(env: RunnerEnvironment):
    async with env.runner() as runner:
        await runner.start(env.job(unit="head -c 20000000 /dev/zero"))
        assert await final_results(runner) == {"unit": PASSED}
        output = await runner.output(ONE, "unit")
        assert output
        assert len(output) < 11_000_000
        assert b"9514240 more bytes were dropped" in output


HOSTILE = ["", ".", "..", "../../x", "a/b", "a\0b", "-x", "unit.log", "Ä🙂", "x" * 150, "x" * 1000, "x" * 999 + "y"]


@pytest.mark.long
@asynchronous
async def test_a_check_may_have_any_name_and_its_output_is_its_own(env: RunnerEnvironment):
    async with env.runner(limit=4) as runner:
        commands = {name: f"echo {number}" for number, name in enumerate(HOSTILE)}
        await runner.start(replace(env.job(), commands=commands))
        assert await final_results(runner, len(HOSTILE)) == dict.fromkeys(HOSTILE, PASSED)
        assert [await runner.output(ONE, name) for name in HOSTILE] == [b"%d\n" % n for n in range(len(HOSTILE))]
    assert {path.parent for path in env.folder.rglob("*.log")} == {env.runs / "run-1"}


# Another event loop


async def run_one_job(env: RunnerEnvironment) -> None:
    async with env.runner() as runner:
        await runner.start(env.job(good="echo hello", bad="exit 1", slow="sleep 1000"))
        assert (await final_results(runner, 2)).keys() == {"good", "bad"}
        await runner.stop(ONE)
        assert await runner.output(ONE, "good") == b"hello\n"
        assert env.checkouts() == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_it_runs_on_either_event_loop(env: RunnerEnvironment, run: Callable[[Coroutine[Any, Any, None]], None]):
    run(run_one_job(env))


@asynchronous
async def test_old_outputs_are_deleted_but_none_of_a_current_run(env: RunnerEnvironment):
    gate = env.gate()
    async with env.runner() as runner:
        await runner.start(env.job("old", unit="echo old"))
        await runner.start(env.job("going-on", unit=f"echo begun; {gate.waiting}"))
        results = [await next_report(runner) for _ in range(3)]
        assert len(results) == 3
        for path in [*env.runs.glob("[!.]*"), *env.runs.glob("[!.]*/*.log")]:
            os.utime(path, (100, 100))
        await runner.delete_outputs(Instant(99_000))
        assert await runner.output(RunId("old"), "unit") is not None
        await runner.delete_outputs(Instant(101_000))
        assert await runner.output(RunId("old"), "unit") is None
        assert await runner.output(RunId("going-on"), "unit") is not None
        gate.open()
        await next_report(runner)
