"""Learns from whoever leaves how likely others are to pass: a logistic model of a few traits, one step per end.

It knows only what the journal knows, and what it says decides nothing: at worst a run is started in vain.
"""

from collections.abc import Iterator
from math import exp

from msgspec.structs import replace

from mergeyard.domain.experience import Experience
from mergeyard.domain.pulls import Submission
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState

ANYBODY, AGAIN, WIDE = "anybody", "again", "wide"
BEFOREHAND = {ANYBODY: 2.2, AGAIN: -1.0, WIDE: -0.3}
"""Nine of ten pass; of those that failed before, three of four; whoever touches much, a little less often."""
PACE = 0.1
"""How far one end moves a weight: some dozen ends of the same kind outweigh what was thought beforehand."""
MOST_TRAITS = 500
MOST_FAILED = 200
FEW_TARGETS = 8
BY_A_TEST = frozenset({Reason.TEST_RUN_FAILED, Reason.TEST_RUN_TIMEOUT, Reason.FAILED_BY_OPTIMIZATION})


def chance(queue: Queue, submission: Submission) -> float:
    """That it passes, before any of its runs has told anything."""
    known = queue.experience
    return 1 / (1 + exp(-sum(_weight(known, trait) for trait in _traits(known, submission))))


def learn(queue: Queue, gone: Submission) -> Queue:
    """Whoever was taken out, closed or merged by hand tells nothing."""
    passed = gone.state is PrState.MERGED and gone.verified_by is not None
    if not passed and gone.reason not in BY_A_TEST:
        return queue
    known, surprise = queue.experience, (1.0 if passed else 0.0) - chance(queue, gone)
    learned = {trait: _weight(known, trait) + PACE * surprise for trait in _traits(known, gone)}
    others = {trait: weight for trait, weight in known.weights.items() if trait not in learned}
    weights = dict([*others.items(), *learned.items()][-MOST_TRAITS:])
    failed = known.failed if passed else (*known.failed, gone.number)[-MOST_FAILED:]
    return replace(queue, experience=Experience(weights, failed))


def _weight(known: Experience, trait: str) -> float:
    return known.weights.get(trait, BEFOREHAND.get(trait, 0.0))


def _traits(known: Experience, submission: Submission) -> Iterator[str]:
    yield ANYBODY
    if submission.pull.author:
        yield f"author {submission.pull.author}"
    if submission.number in known.failed:
        yield AGAIN
    targets = submission.targets
    if targets is None:
        return
    if targets.everything or len(targets.names) > FEW_TARGETS:
        yield WIDE
    else:
        yield from (f"target {name}" for name in sorted(targets.names))
