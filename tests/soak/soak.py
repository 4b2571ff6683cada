"""Runs the traffic, samples the server meanwhile, and checks the result when all submissions are concluded."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event

from mergeyard.service.tasks.test_branches import CLEANUP_INTERVAL_MS
from tests.soak.checks import find_leftovers, wrong_outcomes
from tests.soak.environment import SoakEnvironment
from tests.soak.figures import Interval, SoakResult, failed_resource_checks
from tests.soak.load_control import MIN_UNDER_WAY, LoadController
from tests.soak.samples import Sample, Sampler, measure_disk, take_sample
from tests.soak.traffic import POLL_INTERVAL_S, QueueTraffic
from tests.support.host_log import TEST_BRANCH_PREFIX
from tests.support.promises import broken_promises

SAMPLES_PER_STRETCH = 12
REHEARSAL_S = 5.0
IDLE_S = 4.0
DELIVERY_TIMEOUT_S = 120.0
CLEANUP_TIMEOUT_S = CLEANUP_INTERVAL_MS / 1000 + 60
SHOWN_CHARACTERS = 200
SHOWN_OF_EACH = 10

Progress = Callable[[Interval], object]


class Soak:
    def __init__(self, environment: SoakEnvironment, pacing: LoadController) -> None:
        self._environment = environment
        self._pacing = pacing

    def run(self, stretches: int, seconds_each: float, progress: Progress) -> tuple[SoakResult, list[str]]:
        """The measurements, and the failed checks."""
        before = self._warm_up()
        sampler = Sampler(self._environment.server, lambda: self._environment.ended, seconds_each / SAMPLES_PER_STRETCH)
        with sampler:
            passed = list(self._traffic(sampler, stretches, seconds_each, progress))
        self._run_out()
        seconds_until_clean = self._seconds_until_clean()
        seconds_until_told = self._seconds_until_told()
        after = self._idle_sample()
        wrong = [*self._failed_checks(), *self._broken_promises()]
        figures = SoakResult(
            intervals=passed,
            samples=sampler.samples,
            idle_before=before,
            idle_after=after,
            milliseconds=self._milliseconds(),
            states=Counter(
                submission["state"] for track in self._tracks for submission in track.evidence.submissions.values()
            ),
            landings=sum(len(track.evidence.landings) for track in self._tracks),
            webhooks=len(self._environment.delivered_conclusions),
            seconds_until_clean=seconds_until_clean,
            seconds_until_delivered=seconds_until_told,
        )
        return figures, [*wrong, *failed_resource_checks(figures)]

    @property
    def _tracks(self) -> list[QueueTraffic]:
        return self._environment.queues

    # Traffic

    def _warm_up(self) -> Sample:
        """Warms up: creates what is created once and kept, such as threads and connections."""
        self._keep_under_way(MIN_UNDER_WAY)
        enough = Event()
        with ThreadPoolExecutor(len(self._tracks)) as threads:
            working = [threads.submit(track.run_until, enough) for track in self._tracks]
            wait(working, timeout=REHEARSAL_S)
            enough.set()
        for work in working:
            work.result()
        self._run_out()
        return self._idle_sample()

    def _traffic(self, sampler: Sampler, stretches: int, seconds: float, progress: Progress) -> Iterator[Interval]:
        enough = Event()
        with ThreadPoolExecutor(len(self._tracks)) as threads:
            working = [threads.submit(track.run_until, enough) for track in self._tracks]
            try:
                yield from self._stretches(working, sampler, stretches, seconds, progress)
            finally:
                enough.set()
        for work in working:
            work.result()

    def _stretches(
        self, working: list[Future[None]], sampler: Sampler, stretches: int, seconds: float, progress: Progress
    ) -> Iterator[Interval]:
        for _ in range(stretches):
            self._keep_under_way(self._pacing.under_way)
            before, started_at = self._environment.ended, time.monotonic()
            if wait(working, timeout=seconds, return_when="FIRST_COMPLETED").done:
                break  # one of them failed
            per_minute = 60 * (self._environment.ended - before) / (time.monotonic() - started_at)
            stretch = self._stretch(sampler.samples[-1], per_minute)
            progress(stretch)
            yield stretch
            self._pacing.adjust(per_minute)

    def _keep_under_way(self, pulls: int) -> None:
        for track in self._tracks:
            track.wanted_live = pulls // len(self._tracks)

    def _stretch(self, last: Sample, per_minute: float) -> Interval:
        self._environment.read_events()
        self._environment.maintain_repositories()
        disk = measure_disk(self._environment.server)
        return Interval(last.seconds, self._environment.ended, per_minute, self._pacing.under_way, last, disk)

    def _run_out(self) -> None:
        for track in self._tracks:
            track.drain()

    def _idle_sample(self) -> Sample:
        """The minimum over a few seconds: an idle server runs maintenance now and then."""
        samples = [take_sample(self._environment.server)]
        deadline = time.monotonic() + IDLE_S
        while time.monotonic() < deadline:
            time.sleep(POLL_INTERVAL_S)
            samples.append(take_sample(self._environment.server))
        return min(samples, key=lambda sample: (sample.descriptors, sample.children))

    def _seconds_until_clean(self) -> float:
        """A test branch that was pushed when its run had just ended stays until the next branch cleanup."""
        started_at = time.monotonic()
        while any(map(_has_test_branches, self._tracks)) and time.monotonic() < started_at + CLEANUP_TIMEOUT_S:
            time.sleep(POLL_INTERVAL_S)
        return time.monotonic() - started_at

    def _seconds_until_told(self) -> float:
        """Events are delivered one by one; waits as long as any arrives."""
        started_at = last = time.monotonic()
        count = -1
        while not self._environment.all_conclusions_delivered() and time.monotonic() < last + DELIVERY_TIMEOUT_S:
            if len(self._environment.delivered_conclusions) > count:
                count, last = len(self._environment.delivered_conclusions), time.monotonic()
            time.sleep(POLL_INTERVAL_S)
        return time.monotonic() - started_at

    # Checks

    def _failed_checks(self) -> Iterator[str]:
        environment = self._environment
        for track in self._tracks:
            yield from (f"#{number} of {track.origin.path.name} never ended" for number in track.live)
        yield from find_leftovers(
            environment.server.folder, [track.origin for track in self._tracks], environment.temporary
        )
        if not environment.all_conclusions_delivered():
            delivered = len(environment.delivered_conclusions)
            yield f"of {environment.ended} conclusions only {delivered} were delivered by webhook"
        for entry in environment.server.logged_errors():
            yield f"the log says: {entry['event']} {entry.get('exception', '')[-SHOWN_CHARACTERS:]}"

    def _broken_promises(self) -> Iterator[str]:
        for track in self._tracks:
            track.evidence.collect()
            yield from broken_promises(track.evidence)
            yield from wrong_outcomes(track)
            if track.ci.evaluate(track.origin.tip(track.target_branch)) != "success":
                yield f"{track.target_branch} of {track.origin.path.name} fails its checks"

    def _milliseconds(self) -> dict[str, list[float]]:
        merged = defaultdict[str, list[float]](list)
        for track in self._tracks:
            for path, milliseconds in track.milliseconds.items():
                merged[path] += milliseconds
        return merged


def _has_test_branches(track: QueueTraffic) -> bool:
    return any(ref.startswith(TEST_BRANCH_PREFIX) for ref in track.origin.refs())
