"""Cuts a script that breaks a promise down to what breaks it, and tells it as a test that can be pasted."""

import re
from collections.abc import Callable, Iterator

from msgspec.structs import asdict, replace

from mergeyard.domain.config import Config
from tests.simulation.script import Nature, Script

IsBroken = Callable[[Script], bool]

ENUM = re.compile(r"<(\w+\.\w+): '[^']*'>")
"""As Python shows a member of one, with its name in the code."""


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
        yield replace(script, has_forge=False)
    if len(script.statuses) > 1:
        yield replace(script, statuses=script.statuses[:1])
    yield from _with_usual(script, "nature", Nature())
    yield from _with_usual(script, "config", Config())
    for name, usual in asdict(Nature()).items():
        yield from _with_usual(script, "nature", replace(script.nature, **{name: usual}))
    for name, usual in asdict(Config()).items():
        yield from _with_usual(script, "config", replace(script.config, **{name: usual}))


def _with_usual(script: Script, name: str, value: object) -> Iterator[Script]:
    if getattr(script, name) != value:
        yield replace(script, **{name: value})


def _with_fewer_acts(script: Script) -> Iterator[Script]:
    """First without large parts, then without single ones."""
    acts, size = script.acts, len(script.acts) // 2
    while size:
        for start in range(0, len(acts), size):
            yield replace(script, acts=acts[:start] + acts[start + size :])
        size //= 2


def as_test(script: Script) -> str:
    """For tests/simulation/test_stories.py."""
    settings = {name: value for name, value in asdict(script).items() if value != getattr(Script(), name)}
    lines = [f"    {name}={_told(value)}," for name, value in settings.items() if name not in {"acts", "families"}]
    acts = [f"        {act}," for act in script.acts]
    return ENUM.sub(r"\1", "\n".join(["Script(", *lines, "    acts=(", *acts, "    ),", ")"]))


def _told(value: object) -> str:
    if not isinstance(value, Config):
        return repr(value)
    changed = {name: each for name, each in asdict(value).items() if each != getattr(Config(), name)}
    return f"Config({', '.join(f'{name}={each!r}' for name, each in changed.items())})"
