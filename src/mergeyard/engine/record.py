"""Takes events down as facts, or refuses a request that cannot be carried out; decides nothing else."""

from typing import assert_never

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.instants import Instant
from mergeyard.domain.landing import Landing
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason, Refusal
from mergeyard.engine import building, clock, doubting, landing, looking, operating, places, requesting

LandingEvent = (
    e.LandingComposed
    | e.CompositionRefused
    | e.LandingRead
    | e.LandingSucceeded
    | e.LandingMissed
    | e.LandingRefused
    | e.LandingLost
)


def record(queue: Queue, event: e.Event, now: Instant) -> Queue | Refusal:
    match event:
        case e.PrSubmitted():
            return requesting.submit(queue, event, now)
        case e.CancelRequested():
            return requesting.cancel(queue, event, now)
        case e.RestartRequested():
            return requesting.restart(queue, event, now)
        case e.PriorityRequested():
            return requesting.prioritise(queue, event, now)
        case e.TargetsUploaded():
            return requesting.upload_targets(queue, event, now)
        case e.SettingsSaved():
            return operating.save_settings(queue, event.config, now, event.actor)
        case e.StateRequested():
            return operating.set_state(queue, event.state, Reason.STATE_REQUESTED, now, actor=event.actor)
        case e.PullTouched():
            return looking.ask_for_pull(queue, event.number)
        case e.TargetTouched():
            return looking.ask_for_target(queue)
        case e.PullSeen():
            return looking.see_pull(queue, event, now)
        case e.TargetSeen():
            return looking.see_target(queue, event)
        case e.ChecksSeen():
            return looking.see_checks(queue, event, now)
        case e.HostLost():
            return queue if queue.host_lost_at is not None else replace(queue, host_lost_at=now)
        case e.HostFound():
            return clock.note_outage(queue, now)
        case e.WatchBegan():
            return looking.ask_for_the_unknown(clock.note_absence(queue, now))
        case e.RunBuilt():
            return building.record_built(queue, event, now)
        case e.RunRefused():
            return building.record_refused(queue, event, now)
        case e.GroundLost():
            return building.record_ground_lost(queue, event, now)
        case e.BranchDeleted():
            return building.record_deleted(queue, event)
        case e.HeadExamined():
            return _record_exam(queue, event)
        case e.LandingsDoubted():
            return doubting.doubt(queue, event, now)
        case _:
            return _record_of_landing(queue, queue.landing, event, now)


def _record_exam(queue: Queue, event: e.HeadExamined) -> Queue:
    """Of the one who is to be examined, as long as nothing moved and nothing else was taken off meanwhile."""
    submission, asked = queue.submissions.get(event.ticket), (queue.direct, queue.target.tip, queue.target.removed)
    if submission is None or asked != (event.ticket, event.exam.tip, event.forbidden):
        return queue
    return places.update(queue, replace(submission, exam=event.exam))


def _record_of_landing(queue: Queue, current: Landing | None, event: LandingEvent, now: Instant) -> Queue:
    if current is None or current.number != event.landing:
        return queue
    match event:
        case e.LandingComposed():
            return landing.record_composed(queue, current, event)
        case e.CompositionRefused():
            return landing.record_composition_refused(queue, current, event)
        case e.LandingRead():
            return landing.record_read(queue, current, event, now)
        case e.LandingSucceeded():
            return landing.record_success(queue, current, event, now)
        case e.LandingMissed():
            return landing.record_missed(queue, current, event, now)
        case e.LandingRefused():
            return landing.record_refused(queue, current, event, now)
        case e.LandingLost():
            return landing.record_lost(queue, current, event, now)
        case _:
            assert_never(event)
