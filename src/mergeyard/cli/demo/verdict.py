"""Looks afterwards whether everything came out as it should, in the answers, in git and on a clean checkout."""

import asyncio
import tomllib
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path

from msgspec import Struct

from mergeyard.adapters.host_plain.process import environment, git, killed
from mergeyard.adapters.host_plain.refs import refs_below
from mergeyard.cli.demo.asking import Asking, Stay
from mergeyard.cli.demo.sample import PULLS, Ending, Pull
from mergeyard.cli.demo.scene import Scene
from mergeyard.cli.demo.teahouse import BRANCH
from mergeyard.domain.states import PrState, RunStatus

TEST_BRANCHES = "refs/heads/mergeyard"
PATIENCE = 30
"""Seconds until the last test branch is gone."""


class Finding(Struct, frozen=True):
    sentence: str
    differences: tuple[str, ...] = ()
    """What is not so; none when the sentence is true."""


async def findings(scene: Scene, author: Asking, repository: Path, folder: Path) -> AsyncIterator[Finding]:
    yield endings(scene)
    yield await main_is_green(repository, folder / "checkout")
    yield await what_landed_was_tested(scene, author, repository)
    yield await no_test_branch_is_left(repository)


# How everybody ended


def endings(scene: Scene) -> Finding:
    wrong = (
        f"#{number} should be {pull.expected}, not {ending_of(scene, number)}"
        for number, pull in enumerate(PULLS, start=1)
        if not ended_well(scene, number, pull)
    )
    return Finding(f"All {len(PULLS)} pull requests ended as they should.", tuple(wrong))


def ended_well(scene: Scene, number: int, pull: Pull) -> bool:
    ended = ending_of(scene, number)
    if ended == pull.expected or pull.rival is None:
        return ended == pull.expected
    changed_places = (PULLS[pull.rival - 1].expected, pull.expected)
    return (ended, ending_of(scene, pull.rival)) == changed_places


def ending_of(scene: Scene, number: int) -> Ending | None:
    stay = scene.stays.get(number)
    return None if stay is None else Ending(stay.state, stay.reason.code)


# The main branch


async def main_is_green(repository: Path, checkout: Path) -> Finding:
    await output_of("git", "clone", "--quiet", "--branch", BRANCH, str(repository), str(checkout), within=repository)
    checks: dict[str, str] = tomllib.loads((checkout / ".mergeyard.toml").read_text())["checks"]
    outputs = [(name, await output_of("sh", "-c", command, within=checkout)) for name, command in checks.items()]
    red = (f"{name} failed:\n{output}" for name, (code, output) in outputs if code != 0)
    passed = " and ".join(checks)
    return Finding(f"The main branch is green: {passed} pass in a clean checkout.", tuple(red))


async def output_of(*command: str, within: Path) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, cwd=within, env=environment()
    )
    try:
        output, _ = await process.communicate()
    finally:
        await killed(process)
    return process.returncode, output.decode(errors="replace")


# What landed


async def what_landed_was_tested(scene: Scene, author: Asking, repository: Path) -> Finding:
    merged = scene.in_state(PrState.MERGED)
    landed = await commits_of(repository, BRANCH)
    *ours, _first = landed
    strangers = {f"nobody submitted {sha}" for sha in ours} - {f"nobody submitted {stay.merged_sha}" for stay in merged}
    doubts = [doubt for stay in merged if (doubt := await untested(stay, landed, author, repository))]
    sentence = f"Each of the {len(merged)} commits that landed has the very bytes that a run tested."
    return Finding(sentence, (*strangers, *doubts))


async def untested(stay: Stay, landed: dict[str, str], author: Asking, repository: Path) -> str:
    """Why its commit was not tested as it landed; empty when it was."""
    if stay.merged_sha not in landed or stay.verified_by_test_run is None:
        return f"#{stay.pr_number} is called merged, but did not land"
    run = await author.run(stay.verified_by_test_run)
    tested = await commits_of(repository, run.test_branch_sha)
    if run.status is not RunStatus.SUCCEEDED or landed[stay.merged_sha] not in tested.values():
        return f"#{stay.pr_number} landed as {stay.merged_sha}, which the run {run.id} did not test"
    if tested[run.test_branch_sha] not in landed.values():
        return f"#{stay.pr_number} landed without the rest of what the run {run.id} tested"
    return ""


async def commits_of(repository: Path, place: str) -> dict[str, str]:
    """Its commits along first parents, newest first, each with its tree and its parents."""
    shown = await git(repository, "log", "--first-parent", "--format=%H %T %P", "--end-of-options", place)
    return dict(line.split(" ", 1) for line in shown.decode().splitlines())


# What is left over


async def no_test_branch_is_left(repository: Path) -> Finding:
    left = await refs_below(repository, TEST_BRANCHES)
    for _ in range(PATIENCE * 10):
        if not left:
            break
        await asyncio.sleep(0.1)
        left = await refs_below(repository, TEST_BRANCHES)
    return Finding("No test branch is left over.", tuple(f"{ref} is still there" for ref in left))
