"""Plays many worlds on all cores, and reports which of them broke a promise."""

import gc
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from os import cpu_count

from msgspec import Struct
from msgspec.structs import asdict, replace

from mergeyard.domain.config import Config
from tests.simulation.faults import Family
from tests.simulation.generator import draw
from tests.simulation.promises import violations
from tests.simulation.script import Heads, Nature, Script
from tests.simulation.world import World, capture_logged_errors

IsBroken = Callable[[Script], bool]

ENUM = re.compile(r"<(\w+\.\w+): '[^']*'>")
"""The repr of an enum member; group 1 is its name in code."""


def shrink(script: Script, is_broken: IsBroken) -> Script:
    """Until nothing more can be left out."""
    while True:
        smaller = next((each for each in _smaller(script) if is_broken(each)), None)
        if smaller is None:
            return script
        script = smaller


def _smaller(script: Script) -> Iterator[Script]:
    yield from _with_fewer_acts(script)
    for number in range(1, script.replicas):
        yield replace(script, replicas=number)
    if script.has_forge:
        without_forks = script.heads and replace(script.heads, moved_first=False, in_forks=(), in_closed_forks=())
        yield replace(script, has_forge=False, requires_approval=False, hides_reviews=False, heads=without_forks)
    yield from _with_default(script, "requires_approval", False)
    yield from _with_default(script, "hides_reviews", False)
    if len(script.statuses) > 1:
        yield replace(script, statuses=script.statuses[:1])
    if script.heads is not None:
        yield replace(script, heads=None)
        for name, default in asdict(Heads()).items():
            yield from _with_default(script, "heads", replace(script.heads, **{name: default}))
    yield from _with_default(script, "nature", Nature())
    yield from _with_default(script, "config", Config())
    for name, default in asdict(Nature()).items():
        yield from _with_default(script, "nature", replace(script.nature, **{name: default}))
    for name, default in asdict(Config()).items():
        yield from _with_default(script, "config", replace(script.config, **{name: default}))


def _with_default(script: Script, name: str, value: object) -> Iterator[Script]:
    if getattr(script, name) != value:
        yield replace(script, **{name: value})


def _with_fewer_acts(script: Script) -> Iterator[Script]:
    """First without large parts, then without single acts."""
    acts, size = script.acts, len(script.acts) // 2
    while size:
        for start in range(0, len(acts), size):
            yield replace(script, acts=acts[:start] + acts[start + size :])
        size //= 2


def as_test(script: Script) -> str:
    """For tests/simulation/test_stories.py."""
    settings = {name: value for name, value in asdict(script).items() if value != getattr(Script(), name)}
    lines = [
        f"    {name}={_format_value(value)}," for name, value in settings.items() if name not in {"acts", "families"}
    ]
    acts = [f"        {act}," for act in script.acts]
    return ENUM.sub(r"\1", "\n".join(["Script(", *lines, "    acts=(", *acts, "    ),", ")"]))


def _format_value(value: object) -> str:
    if not isinstance(value, Config):
        return repr(value)
    changed = {name: each for name, each in asdict(value).items() if each != getattr(Config(), name)}
    return f"Config({', '.join(f'{name}={each!r}' for name, each in changed.items())})"


WORLDS_PER_JOB = 10


class Outcome(Struct, frozen=True):
    seed: int
    families: frozenset[Family]
    broken: tuple[str, ...]
    """Every promise that was broken, and how."""
    ends: dict[str, int]
    occurrences: dict[tuple[Family, str], int]
    """How often a family of faults occurred, by the phase of the queue."""
    landings: int
    withdrawals: dict[str, int]
    """How often an approval was withdrawn, by what the queue was doing with the pull request."""
    head_pushes: dict[str, int]
    """How often a head branch moved, by who moved it and how."""


def play(seed: int, *, with_reviews: bool = False, with_heads: bool = False) -> Outcome:
    return play_script(draw(seed, with_reviews=with_reviews, with_heads=with_heads))


def play_script(script: Script) -> Outcome:
    with quiet():
        return _play_script(script)


def _play_script(script: Script) -> Outcome:
    world = World(script)
    broken, ends = _play_and_check(world)
    landings = sum(transaction.by_service and len(transaction.updates) > 1 for transaction in world.origin.log)
    world.close()
    return Outcome(
        seed=script.seed,
        families=script.families,
        broken=broken,
        ends=ends,
        occurrences=dict(world.faults.occurrences),
        landings=landings,
        withdrawals=dict(world.withdrawals),
        head_pushes=world.count_head_pushes(),
    )


def _play_and_check(world: World) -> tuple[tuple[str, ...], dict[str, int]]:
    try:
        world.play()
        broken = violations(world)
        submissions = world.api.post("listPullRequests", take=100)["pullRequests"]
        return tuple(broken), dict(Counter(f"{each['state']} ({each['reason']['code']})" for each in submissions))
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return (f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})",), {}


def shrink_script(script: Script) -> Script:
    """The smallest script that breaks a promise in the same way."""
    kinds = {_kind(broken) for broken in play_script(script).broken}
    return shrink(script, lambda smaller: not kinds.isdisjoint(map(_kind, play_script(smaller).broken)))


def _kind(broken: str) -> str:
    return broken.partition(":")[0]


def _ignore(_: object) -> None:
    """Unraisable exceptions of killed replicas are expected."""


@contextmanager
def quiet() -> Generator[None]:
    """Drops warnings about the unfinished tasks of killed replicas, and collects garbage once at the end."""
    hook, sys.unraisablehook = sys.unraisablehook, _ignore
    gc.disable()
    gc.freeze()  # objects from before the world need not be scanned
    try:
        with capture_logged_errors([]):
            yield
            gc.collect()
    finally:
        gc.unfreeze()
        gc.enable()
        sys.unraisablehook = hook


def replay_command(seed: int, *, with_reviews: bool = False, with_heads: bool = False) -> str:
    options = f"{' --reviews' if with_reviews else ''}{' --heads' if with_heads else ''}"
    return f".venv/bin/python -m tests.simulation --seed {seed}{options}"


def play_many(seeds: Iterable[int], *, with_reviews: bool, with_heads: bool) -> Iterator[Outcome]:
    one = partial(play, with_reviews=with_reviews, with_heads=with_heads)
    with ProcessPoolExecutor(cpu_count()) as pool:
        yield from pool.map(one, seeds, chunksize=WORLDS_PER_JOB)
