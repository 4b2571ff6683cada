"""Runs the traffic and looks at the server meanwhile; when everybody has ended, it judges."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event

from mergeyard.service.sweeping import INTERVAL
from tests.soak.fates import wronged
from tests.soak.figures import Figures, Stretch, wrong_with
from tests.soak.grounds import Grounds
from tests.soak.leftovers import left_over
from tests.soak.pacing import FEWEST, Pacing
from tests.soak.sampling import Sample, Sampler, disk_used, looked_at
from tests.soak.track import PAUSE, Track
from tests.support.host_log import TEST_BRANCHES
from tests.support.promises import broken_promises

SAMPLES_PER_STRETCH = 12
SECONDS_OF_REHEARSAL = 5.0
SECONDS_OF_REST = 4.0
SECONDS_OF_SILENCE = 120.0
SECONDS_TO_SWEEP = INTERVAL / 1000 + 60
WORDS_OF_A_COMPLAINT = 200
SHOWN_OF_EACH = 10

Progress = Callable[[Stretch], object]


class Soak:
    def __init__(self, grounds: Grounds, pacing: Pacing) -> None:
        self._grounds = grounds
        self._pacing = pacing

    def run(self, stretches: int, seconds_each: float, progress: Progress) -> tuple[Figures, list[str]]:
        """The figures, and what is wrong with them."""
        before = self._rehearse()
        sampler = Sampler(self._grounds.server, lambda: self._grounds.ended, seconds_each / SAMPLES_PER_STRETCH)
        with sampler:
            passed = list(self._traffic(sampler, stretches, seconds_each, progress))
        self._run_out()
        seconds_until_clean = self._seconds_until_clean()
        seconds_until_told = self._seconds_until_told()
        after = self._at_rest()
        wrong = [*self._wrong_at_the_end(), *self._broken_promises()]
        figures = Figures(
            stretches=passed,
            samples=sampler.samples,
            idle_before=before,
            idle_after=after,
            milliseconds=self._milliseconds(),
            states=Counter(stay["state"] for track in self._tracks for stay in track.evidence.stays.values()),
            landings=sum(len(track.evidence.landings) for track in self._tracks),
            webhooks=len(self._grounds.ends_told),
            seconds_until_clean=seconds_until_clean,
            seconds_until_told=seconds_until_told,
        )
        return figures, [*wrong, *wrong_with(figures)]

    @property
    def _tracks(self) -> list[Track]:
        return self._grounds.tracks

    # Traffic

    def _rehearse(self) -> Sample:
        """Whatever is made only once, and kept, is made now."""
        self._keep_under_way(FEWEST)
        enough = Event()
        with ThreadPoolExecutor(len(self._tracks)) as threads:
            working = [threads.submit(track.go_on_until, enough) for track in self._tracks]
            wait(working, timeout=SECONDS_OF_REHEARSAL)
            enough.set()
        for work in working:
            work.result()
        self._run_out()
        return self._at_rest()

    def _traffic(self, sampler: Sampler, stretches: int, seconds: float, progress: Progress) -> Iterator[Stretch]:
        enough = Event()
        with ThreadPoolExecutor(len(self._tracks)) as threads:
            working = [threads.submit(track.go_on_until, enough) for track in self._tracks]
            try:
                yield from self._stretches(working, sampler, stretches, seconds, progress)
            finally:
                enough.set()
        for work in working:
            work.result()

    def _stretches(
        self, working: list[Future[None]], sampler: Sampler, stretches: int, seconds: float, progress: Progress
    ) -> Iterator[Stretch]:
        for _ in range(stretches):
            self._keep_under_way(self._pacing.under_way)
            before, begun = self._grounds.ended, time.monotonic()
            if wait(working, timeout=seconds, return_when="FIRST_COMPLETED").done:
                break  # one of them failed
            per_minute = 60 * (self._grounds.ended - before) / (time.monotonic() - begun)
            stretch = self._stretch(sampler.samples[-1], per_minute)
            progress(stretch)
            yield stretch
            self._pacing.consider(per_minute)

    def _keep_under_way(self, pulls: int) -> None:
        for track in self._tracks:
            track.under_way = pulls // len(self._tracks)

    def _stretch(self, last: Sample, per_minute: float) -> Stretch:
        self._grounds.hear()
        self._grounds.look_after()
        disk = disk_used(self._grounds.server)
        return Stretch(last.seconds, self._grounds.ended, per_minute, self._pacing.under_way, last, disk)

    def _run_out(self) -> None:
        for track in self._tracks:
            track.run_out()

    def _at_rest(self) -> Sample:
        """Now and then it looks after its repositories also when nobody asks anything: the least counts."""
        looks = [looked_at(self._grounds.server)]
        deadline = time.monotonic() + SECONDS_OF_REST
        while time.monotonic() < deadline:
            time.sleep(PAUSE)
            looks.append(looked_at(self._grounds.server))
        return min(looks, key=lambda look: (look.descriptors, look.children))

    def _seconds_until_clean(self) -> float:
        """A branch that was pushed when its run had just been given up stays until somebody sweeps."""
        begun = time.monotonic()
        while any(map(_has_test_branches, self._tracks)) and time.monotonic() < begun + SECONDS_TO_SWEEP:
            time.sleep(PAUSE)
        return time.monotonic() - begun

    def _seconds_until_told(self) -> float:
        """Events come one after the other, so many may be on their way; as long as any comes, it is waited for."""
        begun = last = time.monotonic()
        told = -1
        while not self._grounds.everybody_was_told() and time.monotonic() < last + SECONDS_OF_SILENCE:
            if len(self._grounds.ends_told) > told:
                told, last = len(self._grounds.ends_told), time.monotonic()
            time.sleep(PAUSE)
        return time.monotonic() - begun

    # Judgement

    def _wrong_at_the_end(self) -> Iterator[str]:
        grounds = self._grounds
        for track in self._tracks:
            yield from (f"#{number} of {track.origin.path.name} never ended" for number in track.live)
        yield from left_over(grounds.server.folder, [track.origin for track in self._tracks], grounds.temporary)
        if not grounds.everybody_was_told():
            yield f"of {grounds.ended} that ended only {len(grounds.ends_told)} were told of by webhook"
        for entry in grounds.server.complaints():
            yield f"the log says: {entry['event']} {entry.get('exception', '')[-WORDS_OF_A_COMPLAINT:]}"

    def _broken_promises(self) -> Iterator[str]:
        for track in self._tracks:
            track.evidence.collect()
            yield from broken_promises(track.evidence)
            yield from wronged(track)
            if track.ci.verdict(track.origin.tip(track.target)) != "success":
                yield f"{track.target} of {track.origin.path.name} is red"

    def _milliseconds(self) -> dict[str, list[float]]:
        taken = defaultdict[str, list[float]](list)
        for track in self._tracks:
            for path, milliseconds in track.milliseconds.items():
                taken[path] += milliseconds
        return taken


def _has_test_branches(track: Track) -> bool:
    return any(ref.startswith(TEST_BRANCHES) for ref in track.origin.refs())
