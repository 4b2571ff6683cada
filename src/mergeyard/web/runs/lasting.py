"""How long a run takes, against how long runs usually take."""

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.runs import Run
from mergeyard.web import words


class Span(Struct, frozen=True):
    elapsed: int
    usual: int | None

    @property
    def late(self) -> bool:
        return self.usual is not None and self.elapsed > self.usual

    @property
    def compared(self) -> str:
        """`about as usual`, `3 min longer than usual`; nothing while nobody knows what is usual."""
        if self.usual is None:
            return ""
        difference = self.elapsed - self.usual
        if abs(difference) * 10 <= self.usual:
            return "about as usual"
        return f"{words.lasting(abs(difference))} {'longer' if difference > 0 else 'shorter'} than usual"

    @property
    def expected(self) -> str:
        """While it goes on: `usually 12 min`, or that it takes longer."""
        if self.usual is None:
            return "no run has passed yet to compare it with"
        return self.compared if self.late else f"usually {words.lasting(self.usual)}"


def span(run: Run, usual: int | None, now: Instant) -> Span:
    started = run.started_at or now
    return Span(max(0, (run.decided_at or now) - started), usual)
