"""How often estimates held, in a finding and a sentence about it."""

from msgspec import Struct

from mergeyard.service.foretelling.calibration import Held
from mergeyard.web.health import numbers

TOO_FEW = 20
"""Merges: of fewer, one more or less would be another finding."""


class Estimates(Struct, frozen=True):
    finding: str
    note: str


def judged(held: Held) -> Estimates:
    if not held.merged:
        return Estimates("No estimate has been put to the test", "Nothing that was given an estimate has merged yet.")
    late = f"p90 held for {held.by_late:,} of {held.merged:,} merged"
    middle = f"p50 for {held.by_middle:,}"
    if held.merged < TOO_FEW:
        return Estimates("Too few merges to judge the estimates", f"So far {late}, {middle}.")
    shares = (numbers.share(by / held.merged) for by in (held.by_late, held.by_middle))
    return Estimates(late, f"That is {', and p50 held for '.join(shares)}. Wished for are 90 % and 50 %.")
