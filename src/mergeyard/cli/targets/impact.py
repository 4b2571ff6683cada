"""Finds the targets that changed paths impact, by the globs of the repository."""

from collections.abc import Iterable
from typing import assert_never

from mergeyard.cli.targets.globs import covering
from mergeyard.domain.targets import ALL, NOTHING, Targets, named, union
from mergeyard.service.repository_config import PathTargets, Unmatched

EVERYTHING = "ALL"
LONGEST_TARGET = 1024
"""Bytes that the API takes as one name."""


def impacted(paths: Iterable[str], told: PathTargets) -> Targets:
    patterns = {target: covering(globs) for target, globs in told.globs.items()}

    def impact(path: str) -> Targets:
        covered_by = [target for target, pattern in patterns.items() if pattern.fullmatch(path)]
        return targets_named(covered_by) if covered_by else uncovered(path, told.unmatched)

    return union(map(impact, paths))


def targets_named(names: Iterable[str]) -> Targets:
    """Whoever names ALL among others means all."""
    targets = named(*names)
    return ALL if EVERYTHING in targets.names else targets


def uncovered(path: str, unmatched: Unmatched) -> Targets:
    match unmatched:
        case Unmatched.ALL:
            return ALL
        case Unmatched.IGNORE:
            return NOTHING
        case Unmatched.PATH:
            name = on_one_line(path)
            return targets_named([name]) if len(name.encode()) <= LONGEST_TARGET else ALL
        case _:
            assert_never(unmatched)


def on_one_line(path: str) -> str:
    """A path as text that survives pipes and terminals, whatever bytes are in it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)
