"""What history cannot tell, and what is taken for true instead: each counted, and in words."""

from enum import StrEnum

from msgspec import Struct

from mergeyard.domain.config import Mode
from mergeyard.sim.replaying.history import End, History, Place, Setting
from mergeyard.sim.replaying.replay import Replayed
from mergeyard.sim.replaying.truth import Truth


class About(StrEnum):
    OUTCOMES = "outcomes"
    CONFLICTS = "conflicts"
    LENGTHS = "lengths"
    TARGETS = "targets"
    RUNS = "runs"
    BASES = "bases"
    SETTINGS = "settings"


WORDS = {
    About.OUTCOMES: "pull requests left before any run judged them: they are taken to be good.",
    About.CONFLICTS: "pull requests broke with one of several others: the last that came into it is taken.",
    About.LENGTHS: "pull requests had no run that ended by itself: the usual length of runs is taken for theirs.",
    About.TARGETS: "pull requests have no impacted targets: they are taken to impact ALL.",
    About.RUNS: "runs never were in this form: what they say follows from what became of each pull request.",
    About.BASES: "runs failed the target itself: the replay takes it to be sound.",
    About.SETTINGS: "changes of settings cannot be read: what was before them is taken to be what came after.",
}


class Guess(Struct, frozen=True):
    about: About
    count: int
    of: int
    words: str


class Unknown(Struct, frozen=True):
    """Whom of those that are counted something is guessed about."""

    outcomes: frozenset[Place]
    conflicts: frozenset[Place]
    lengths: frozenset[Place]
    targets: frozenset[Place]
    counted: int

    @property
    def share(self) -> float:
        return len(self.outcomes | self.conflicts | self.lengths | self.targets) / (self.counted or 1)


def unknown(history: History, truth: Truth, settings: tuple[Setting, ...]) -> Unknown:
    counted = frozenset(
        place for place, each in enumerate(history.arrivals) if each.counted and each.end is not End.BESIDE
    )
    aimless = frozenset(place for place in counted if history.arrivals[place].targets is None)
    in_lanes = any(setting.config.mode is Mode.PARALLEL for setting in settings)
    return Unknown(
        outcomes=truth.unjudged & counted,
        conflicts=truth.blamed.doubtful & counted,
        lengths=truth.lengths.unknown & counted,
        targets=aimless if in_lanes else frozenset(),
        counted=len(counted),
    )


def list_guesses(history: History, truth: Truth, unsure: Unknown, changed: Replayed | None) -> tuple[Guess, ...]:
    replayed = () if changed is None else changed.runs
    runs = [run for run in replayed if history.counts(run.tested, run.started_at)]
    decided = sum(run.decided for run in history.runs)
    counts = {
        About.OUTCOMES: (len(unsure.outcomes), unsure.counted),
        About.CONFLICTS: (len(unsure.conflicts), unsure.counted),
        About.LENGTHS: (len(unsure.lengths), unsure.counted),
        About.TARGETS: (len(unsure.targets), unsure.counted),
        About.RUNS: (sum(not run.seen for run in runs), len(runs)),
        About.BASES: (truth.broken_bases, decided),
        About.SETTINGS: (history.unread, history.unread + len(history.settings) - 1),
    }
    return tuple(
        Guess(about, count, of, f"{count:,} of {of:,} {WORDS[about]}") for about, (count, of) in counts.items() if count
    )
