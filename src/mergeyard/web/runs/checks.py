"""The statuses of a run as pages show them: those that it must pass, and whatever else was reported of it."""

from msgspec import Struct

from mergeyard.domain.instants import Instant
from mergeyard.domain.runs import Run
from mergeyard.domain.states import CheckState
from mergeyard.domain.statuses import Status, StatusState
from mergeyard.ports.host import ChecksFrom
from mergeyard.service.runs import ReportedRun
from mergeyard.web import addresses

DONE = frozenset(StatusState) - {StatusState.PENDING}


class Check(Struct, frozen=True, kw_only=True):
    name: str
    state: str
    """As `words.CHECK_STATES` knows it."""
    link: str | None = None
    description: str = ""
    at: Instant | None = None

    @property
    def leads_outside(self) -> bool:
        return self.link is not None and not self.link.startswith("/")


class Checks(Struct, frozen=True):
    required: tuple[Check, ...]
    others: tuple[Check, ...]

    @property
    def done(self) -> int:
        return sum(check.state in DONE for check in self.required)

    @property
    def culprits(self) -> tuple[Check, ...]:
        """Those that kept the run from passing: red, else silent."""
        red = tuple(check for check in self.required if check.state in ("failure", "error"))
        return red or tuple(check for check in self.required if check.state not in DONE)


def checks(reported: ReportedRun, source: ChecksFrom) -> Checks:
    run = reported.run
    known = {status.context: _check(run, status, source) for status in reported.statuses}
    silent = "missing" if run.active else "never"
    return Checks(
        required=tuple(known.get(name) or Check(name=name, state=silent) for name in run.required),
        others=tuple(check for name, check in known.items() if name not in run.required),
    )


def _check(run: Run, status: Status, source: ChecksFrom) -> Check:
    """Where the service is the CI, its own page shows what a command wrote."""
    output = addresses.output_page(run.id, status.context)
    unfinished = status.check is CheckState.PENDING and not run.active
    return Check(
        name=status.context,
        state="never" if unfinished else status.state,
        link=output if source is ChecksFrom.RUN else addresses.outside(status.url),
        description=status.description,
        at=status.at,
    )
