"""What the service may expect of a runner: real commands, run in clean checkouts, that leave nothing behind."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop
from msgspec.structs import replace

from mergeyard.adapters.runner_local.command import Limits
from mergeyard.domain.ids import RunId
from mergeyard.domain.instants import Instant
from mergeyard.domain.statuses import StatusState
from tests.contract.runner.stage import BROKEN, INVALID, OTHER, Stage, ends, told
from tests.support.asynchronous import asynchronous

ONE = RunId("run-1")
PASSED = (StatusState.SUCCESS, "passed")
RUNNING = (StatusState.PENDING, "running")
KNOWN = {"PATH", "HOME", "LANG", "CI", "MERGEYARD_RUN", "MERGEYARD_COMMIT"}
SET_BY_THE_SHELL = {"PWD", "OLDPWD", "SHLVL", "_"}


def is_alive(number: int) -> bool:
    """Whether it still runs; one that ended and waits to be noticed does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


# How commands end


@asynchronous
async def test_a_command_is_pending_when_it_starts_and_then_tells_how_it_ended(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="true"))
        assert await told(runner) == ("unit", *RUNNING)
        assert await told(runner) == ("unit", *PASSED)


@asynchronous
async def test_a_job_that_is_asked_for_again_while_it_is_being_stopped_is_begun_anew(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="sleep 1000"))
        assert await told(runner) == ("unit", *RUNNING)
        stopping = asyncio.create_task(runner.stop(ONE))
        await asyncio.sleep(0)
        await runner.start(stage.job(unit="true"))
        await stopping
        assert await ends(runner) == {"unit": PASSED}


@asynchronous
async def test_a_result_names_the_run_and_the_commit(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="true"))
        result = await runner.next_result()
        assert (result.run, result.commit) == (ONE, stage.commit)


@pytest.mark.parametrize(
    ("command", "words"), [("exit 3", "exit code 3"), ("no-such-command", "exit code 127"), ("kill -9 $$", "signal 9")]
)
@asynchronous
async def test_any_other_end_is_a_failure_that_says_which(stage: Stage, command: str, words: str):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit=command))
        state, description = (await ends(runner))["unit"]
        assert state is StatusState.FAILURE
        assert words in description


@asynchronous
async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(stage: Stage):
    async with stage.runner() as runner:
        command = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait"
        await runner.start(stage.job(unit=command, timeout=500))
        assert await ends(runner) == {"unit": (StatusState.ERROR, "ran longer than 0.5 s and was ended")}
        written = await runner.output(ONE, "unit")
        assert written
        assert [is_alive(int(number)) for number in written.split()] == [False, False]


@asynchronous
async def test_a_command_that_will_not_be_asked_to_end_is_ended(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="trap '' TERM; echo $$; while :; do sleep 1; done", timeout=300))
        assert (await ends(runner))["unit"][0] is StatusState.ERROR
        written = await runner.output(ONE, "unit")
        assert written
        assert not is_alive(int(written))


@asynchronous
async def test_what_a_command_leaves_running_is_ended_with_it(stage: Stage):
    async with stage.runner() as runner:
        command = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; env -i sleep 1000 & echo $!"
        await runner.start(stage.job(unit=command))
        assert await ends(runner) == {"unit": PASSED}
        written = await runner.output(ONE, "unit")
        assert written
        assert [is_alive(int(number)) for number in written.split()] == [False, False, False]


DETACHED = "setsid env -i sh -c '(setsid env -i sh -c \"echo \\$\\$; exec sleep 1000\" &)' &"
"""Forked twice, in a session of its own, and without anything in its environment."""


@asynchronous
async def test_a_process_that_detached_itself_and_cleared_its_environment_ends_with_the_command(stage: Stage):
    gate = stage.gate()
    async with stage.runner() as runner:
        await runner.start(stage.job(unit=f"{DETACHED} {gate.waiting}"))
        while not (written := await runner.output(ONE, "unit") or b"").endswith(b"\n"):
            await asyncio.sleep(0)
        assert is_alive(int(written))
        gate.open()
        assert await ends(runner) == {"unit": PASSED}
        assert not is_alive(int(written))


@asynchronous
async def test_processes_that_keep_forking_end_with_the_command(stage: Stage):
    fork = "echo x >> forks; setsid sh fork.sh &"
    async with stage.runner() as runner:
        command = f"echo '{fork}' > fork.sh; sh fork.sh; while [ $(wc -l < forks) -lt 50 ]; do :; done"
        await runner.start(stage.job(unit=command))
        assert await ends(runner) == {"unit": PASSED}
        assert stage.work_places() == []


@asynchronous
async def test_a_command_that_kills_its_supervisor_fails(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="kill -9 $PPID; exec sleep 1000"))
        assert await ends(runner) == {
            "unit": (StatusState.ERROR, "could not be run: the process that supervises the command was killed")
        }


# Limits


@asynchronous
async def test_a_command_with_too_many_processes_is_ended_and_fails(stage: Stage):
    stage.limits = Limits(max_processes=20)
    words = "it had more than 20 processes at once (runner_max_processes)"
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="for i in $(seq 50); do setsid sleep 1000 & done; echo started; wait"))
        assert await ends(runner) == {"unit": (StatusState.FAILURE, f"was ended: {words}")}
        assert await runner.output(ONE, "unit") == f"started\n\n[the check was ended: {words}]\n".encode()


@pytest.mark.parametrize(
    "command",
    [
        "head -c 9000000 /dev/zero > large",
        "i=0; while :; do i=$((i + 1)); head -c 3000000 /dev/zero > ~/$i; sleep 0.1; done",
    ],
    ids=["one file", "many files"],
)
@asynchronous
async def test_a_command_whose_files_take_too_much_room_is_ended_and_fails(stage: Stage, command: str):
    stage.limits = Limits(max_bytes=8 * 2**20)
    words = "its files took more than 8 MiB of the disk (runner_max_disk_mb)"
    async with stage.runner() as runner:
        await runner.start(stage.job(unit=command))
        assert await ends(runner) == {"unit": (StatusState.FAILURE, f"was ended: {words}")}
        assert f"[the check was ended: {words}]".encode() in (await runner.output(ONE, "unit") or b"")
        assert stage.work_places() == []


@asynchronous
async def test_a_command_leaves_no_core_dump(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="ulimit -c"))
        assert await ends(runner) == {"unit": PASSED}
        assert await runner.output(ONE, "unit") == b"0\n"


# Where commands run


@asynchronous
async def test_every_command_has_a_clean_checkout_of_its_own(stage: Stage):
    seeing = "cat greeting.txt deep/er.txt; ls -A | sort; rm greeting.txt; touch litter; pwd"
    async with stage.runner(limit=1) as runner:
        await runner.start(stage.job(first=seeing, second=seeing))
        assert await ends(runner, 2) == {"first": PASSED, "second": PASSED}
        first, second = (await runner.output(ONE, "first"), await runner.output(ONE, "second"))
        assert first
        assert second
        assert first != second
        assert first.splitlines()[:-1] == second.splitlines()[:-1] == [b"hello", b"xdeep", b"greeting.txt"]


@asynchronous
async def test_nothing_of_a_checkout_stays_not_even_what_is_protected(stage: Stage):
    async with stage.runner() as runner:
        outside = stage.folder / "outside"
        outside.mkdir(mode=0o755)
        command = f"mkdir -p $HOME/a/b && touch $HOME/a/b/c && ln -s {outside} $HOME/a/link && chmod -R a-rwx $HOME/a/b"
        await runner.start(stage.job(unit=command))
        assert await ends(runner) == {"unit": PASSED}
        assert stage.work_places() == []
        assert outside.stat().st_mode & 0o777 == 0o755


@asynchronous
async def test_a_command_knows_only_what_it_should(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MERGEYARD_TOKEN", "secret")
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="/usr/bin/env -0 | tr '\\0' '\\n'; test -z \"$(ls -A \"$HOME\")\""))
        assert await ends(runner) == {"unit": PASSED}
        written = await runner.output(ONE, "unit")
        assert written
        known = dict(line.split("=", 1) for line in written.decode().splitlines())
        assert known.keys() - SET_BY_THE_SHELL == KNOWN
        assert (known["CI"], known["MERGEYARD_RUN"], known["MERGEYARD_COMMIT"]) == ("true", ONE, stage.commit)
        assert known["HOME"] != os.environ["HOME"]


@asynchronous
async def test_a_command_reads_nothing_from_standard_input(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="cat"))
        assert await ends(runner) == {"unit": PASSED}


@asynchronous
async def test_trouble_with_the_checkout_passes_without_blame(stage: Stage):
    stage.failing_checkouts = 2
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="cat greeting.txt"))
        assert await ends(runner) == {"unit": PASSED}


@asynchronous
async def test_a_commit_that_git_refuses_to_check_out_fails_its_check_at_once(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(repo=INVALID, unit="true"))
        words = "the commit cannot be checked out: error: invalid path '.git/config'"
        assert await told(runner) == ("unit", StatusState.FAILURE, words)


# Turns


@asynchronous
async def test_a_repository_whose_checks_cannot_start_does_not_hold_up_others(stage: Stage):
    async with stage.runner(limit=1) as runner:
        await runner.start(stage.job("run-1", repo=BROKEN, broken="true"))
        assert await told(runner) == ("broken", StatusState.PENDING, "cannot be run yet: the mirror is damaged")
        await runner.start(stage.job("run-2", unit="true"))
        async with asyncio.timeout(30):
            assert await ends(runner) == {"unit": PASSED}


@asynchronous
async def test_a_free_slot_goes_to_the_repository_with_the_fewest_running_commands(stage: Stage):
    gates = {name: stage.gate() for name in ("a", "b", "c", "d", "other")}
    waiting = {name: gate.waiting for name, gate in gates.items()}
    async with stage.runner(limit=2) as runner:
        first = {name: waiting[name] for name in ("a", "b", "c", "d")}
        await runner.start(replace(stage.job("run-1"), commands=first))
        assert {await told(runner), await told(runner)} == {("a", *RUNNING), ("b", *RUNNING)}
        await runner.start(stage.job("run-2", repo=OTHER, other=waiting["other"]))
        gates["a"].open()
        assert [await told(runner), await told(runner)] == [("a", *PASSED), ("other", *RUNNING)]
        gates["b"].open()
        assert [await told(runner), await told(runner)] == [("b", *PASSED), ("c", *RUNNING)]


@asynchronous
async def test_a_stopped_run_that_waits_gives_up_its_place_in_the_queue(stage: Stage):
    gate = stage.gate()
    async with stage.runner(limit=1) as runner:
        await runner.start(stage.job("run-1", unit=gate.waiting))
        assert await told(runner) == ("unit", *RUNNING)
        await runner.start(stage.job("run-2", repo=OTHER, waits="true"))
        await runner.start(stage.job("run-3", late="true"))
        await runner.stop(RunId("run-2"))
        gate.open()
        assert (await ends(runner, 2)).keys() == {"unit", "late"}


@asynchronous
async def test_no_more_commands_run_at_once_than_allowed_and_they_come_in_the_order_of_asking(stage: Stage):
    gates = [stage.gate() for _ in range(4)]
    async with stage.runner(limit=2) as runner:
        await runner.start(stage.job("run-1", a=gates[0].waiting, b=gates[1].waiting, c=gates[2].waiting))
        await runner.start(stage.job("run-2", d=gates[3].waiting))
        assert {await told(runner), await told(runner)} == {("a", *RUNNING), ("b", *RUNNING)}
        assert len(stage.work_places()) == 2
        gates[1].open()
        assert [await told(runner), await told(runner)] == [("b", *PASSED), ("c", *RUNNING)]
        gates[0].open()
        assert [await told(runner), await told(runner)] == [("a", *PASSED), ("d", *RUNNING)]
        gates[2].open()
        gates[3].open()
        assert (await ends(runner, 2)).keys() == {"c", "d"}


@asynchronous
async def test_a_job_that_is_there_already_is_not_begun_again(stage: Stage):
    gate = stage.gate()
    async with stage.runner() as runner:
        for _ in range(3):
            await runner.start(stage.job(unit=gate.waiting))
        assert runner.running() == {ONE}
        assert await told(runner) == ("unit", *RUNNING)
        gate.open()
        assert await told(runner) == ("unit", *PASSED)
        await runner.start(stage.job(unit="false"))
        await runner.start(stage.job("run-2", other="true"))
        assert await told(runner) == ("other", *RUNNING)


@asynchronous
async def test_a_run_is_running_until_its_last_command_ended(stage: Stage):
    gate = stage.gate()
    async with stage.runner() as runner:
        assert runner.running() == frozenset()
        await runner.start(stage.job(quick="true", slow=gate.waiting))
        assert (await ends(runner)).keys() == {"quick"}
        assert runner.running() == {ONE}
        gate.open()
        await ends(runner)
        assert runner.running() == frozenset()


# Stopping


@asynchronous
async def test_a_stopped_run_has_ended_everything_and_says_no_more(stage: Stage):
    async with stage.runner(limit=1) as runner:
        await runner.start(stage.job(unit="echo $$; sleep 1000 & echo $!; wait", late="true"))
        assert await told(runner) == ("unit", *RUNNING)
        await runner.stop(ONE)
        assert runner.running() == frozenset()
        assert stage.work_places() == []
        written = await runner.output(ONE, "unit")
        assert [number for number in (written or b"").split() if is_alive(int(number))] == []
        await runner.start(stage.job("run-2", other="true"))
        assert await told(runner) == ("other", *RUNNING)


@asynchronous
async def test_results_that_nobody_fetched_are_gone_with_a_stopped_run(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="true"))
        while runner.running():
            await asyncio.sleep(0)
        await runner.stop(ONE)
        await runner.start(stage.job("run-2", other="true"))
        assert await told(runner) == ("other", *RUNNING)


@asynchronous
async def test_a_stopped_run_can_be_started_again_and_an_unknown_one_stopped(stage: Stage):
    async with stage.runner() as runner:
        await runner.stop(RunId("unknown"))
        await runner.start(stage.job(unit="sleep 1000"))
        await runner.stop(ONE)
        await runner.stop(ONE)
        await runner.start(stage.job(unit="true"))
        assert await ends(runner) == {"unit": PASSED}


# Output


@asynchronous
async def test_output_is_kept_with_errors_in_it_and_can_be_read_while_it_is_written(stage: Stage):
    gate = stage.gate()
    async with stage.runner() as runner:
        await runner.start(stage.job(unit=f"echo out; echo err >&2; {gate.waiting}; echo end"))
        while await runner.output(ONE, "unit") != b"out\nerr\n":
            await asyncio.sleep(0)
        gate.open()
        assert await ends(runner) == {"unit": PASSED}
        assert await runner.output(ONE, "unit") == b"out\nerr\nend\n"
        await runner.stop(ONE)
        assert await runner.output(ONE, "unit") == b"out\nerr\nend\n"


@asynchronous
async def test_output_of_what_never_ran_is_none(stage: Stage):
    async with stage.runner() as runner:
        assert await runner.output(ONE, "unit") is None
        assert await runner.output(RunId("../.."), "../../app.git/HEAD") is None


@asynchronous
async def test_output_beyond_all_measure_is_dropped_with_a_note_and_does_not_fail_the_check(stage: Stage):
    async with stage.runner() as runner:
        await runner.start(stage.job(unit="head -c 20000000 /dev/zero"))
        assert await ends(runner) == {"unit": PASSED}
        written = await runner.output(ONE, "unit")
        assert written
        assert len(written) < 11_000_000
        assert b"9514240 more bytes were dropped" in written


HOSTILE = ["", ".", "..", "../../x", "a/b", "a\0b", "-x", "unit.log", "Ä🙂", "x" * 150, "x" * 1000, "x" * 999 + "y"]


@asynchronous
async def test_a_check_may_have_any_name_and_its_output_is_its_own(stage: Stage):
    async with stage.runner(limit=4) as runner:
        commands = {name: f"echo {number}" for number, name in enumerate(HOSTILE)}
        await runner.start(replace(stage.job(), commands=commands))
        assert await ends(runner, len(HOSTILE)) == dict.fromkeys(HOSTILE, PASSED)
        assert [await runner.output(ONE, name) for name in HOSTILE] == [b"%d\n" % n for n in range(len(HOSTILE))]
    assert {path.parent for path in stage.folder.rglob("*.log")} == {stage.runs / "run-1"}


# Another event loop


async def play(stage: Stage) -> None:
    async with stage.runner() as runner:
        await runner.start(stage.job(good="echo hello", bad="exit 1", slow="sleep 1000"))
        assert (await ends(runner, 2)).keys() == {"good", "bad"}
        await runner.stop(ONE)
        assert await runner.output(ONE, "good") == b"hello\n"
        assert stage.work_places() == []


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_it_runs_on_either_event_loop(stage: Stage, run: Callable[[Coroutine[Any, Any, None]], None]):
    run(play(stage))


@asynchronous
async def test_old_outputs_are_deleted_but_none_of_a_run_that_is_going_on(stage: Stage):
    gate = stage.gate()
    async with stage.runner() as runner:
        await runner.start(stage.job("old", unit="echo old"))
        await runner.start(stage.job("going-on", unit=f"echo begun; {gate.waiting}"))
        results = [await told(runner) for _ in range(3)]
        assert len(results) == 3
        for path in [*stage.runs.glob("[!.]*"), *stage.runs.glob("[!.]*/*.log")]:
            os.utime(path, (100, 100))
        await runner.delete_outputs(Instant(99_000))
        assert await runner.output(RunId("old"), "unit") is not None
        await runner.delete_outputs(Instant(101_000))
        assert await runner.output(RunId("old"), "unit") is None
        assert await runner.output(RunId("going-on"), "unit") is not None
        gate.open()
        await told(runner)
