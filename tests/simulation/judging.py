"""Judges a world that was played: every promise of safety by its three logs, and what must always happen."""

from collections.abc import Iterator

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.domain.reasons import Reason
from mergeyard.engine.explaining import explain
from tests.simulation.evidence import SimEvidence
from tests.simulation.weather import Family
from tests.simulation.world import World
from tests.support.evidence import Stay
from tests.support.promises import broken_promises

FAIR_WAITS = frozenset(
    {Reason.NOT_MERGEABLE, Reason.BASE_BRANCH_MISMATCH, Reason.BASE_BROKEN, Reason.WAITING_FOR_PRS_AHEAD}
)


def violations(world: World) -> list[str]:
    """Every way in which a promise was broken."""
    evidence = SimEvidence(world)
    evidence.collect()
    return [
        *world.errors,
        *(broken for broken in broken_promises(evidence) if not _is_known_limit(broken, evidence)),
        *l1_everybody_ends_or_waits_for_something_fair(world),
        *l2_nobody_innocent_fails(world, evidence),
        *l3_everybody_is_seen_as_it_is(world),
    ]


def _is_known_limit(broken: str, evidence: SimEvidence) -> bool:
    """What is taken off the target after its answer was lost, and before anybody looks: nobody can know that it was
    there. That its branch is gone says so much that it is called unknown; without a branch there is no trace. And a
    forge merges what it was once asked to, and a host takes a direct merge, however late the request arrives."""
    if broken.startswith(("s1", "s5")) and evidence.is_about_a_late_merge(broken):
        return True
    if broken.startswith("s1"):
        return any(new[:8] in broken for new in evidence.undone(without_a_branch=True))
    if broken.startswith("s5") and "landing_unknown" in broken:
        return bool(evidence.undone(without_a_branch=False))
    return broken.startswith(("s3", "s4", "s5")) and bool(evidence.undone(without_a_branch=True))


def l1_everybody_ends_or_waits_for_something_fair(world: World) -> Iterator[str]:
    queue = world.queue
    assert queue, "nobody knows the queue"
    for stay in queue.submissions.values():
        waiting = explain(queue, stay)
        if waiting.reason not in FAIR_WAITS:
            yield f"L1: #{stay.number} is {stay.state} and waits for {waiting.reason} in a fair world"


def l3_everybody_is_seen_as_it_is(world: World) -> Iterator[str]:
    for stay in world.unseen():
        yield f"L3: #{stay.number} is still {stay.state} though it was closed or pushed to"


def l2_nobody_innocent_fails(world: World, evidence: SimEvidence) -> Iterator[str]:
    for stay in evidence.stays.values():
        if stay["state"] in {"failed", "cancelled"} and not _rightly(world, evidence, stay):
            yield f"L2: {evidence.name(stay['id'])} is out though it did nothing"


def _rightly(world: World, evidence: SimEvidence, stay: Stay) -> bool:
    """Whether something in the world is a reason for this."""
    reason, brought = stay["reason"]["code"], _brought(world, stay)
    match reason:
        case "cancelled_by_user" | "pr_pushed" | "pr_closed" | "pr_base_changed":
            return True
        case "landing_unknown":
            return world.people.moved_the_target or world.people.deleted_a_branch
        case "test_run_failed":
            return _may_be_red(world, brought)
        case "test_run_timeout":
            return _may_time_out(world)
        case "failed_by_optimization":
            return _may_be_red(world, brought) or _may_time_out(world)
        case "nothing_to_merge":
            return any(_brings_nothing(world, stay, tip) for tip in _tips_since_submission(evidence, stay))
        case "merge_conflict":
            return any(evidence.conflicts(stay, tip) for tip in _tips_since_submission(evidence, stay))
        case "merge_refused":
            return (PrNumber(stay["prNumber"]), Sha(stay["prSha"])) in world.hosting.clashed
        case "contains_removed_commit":
            return world.people.moved_the_target
        case _:
            return False


def _may_be_red(world: World, brought: set[str]) -> bool:
    return world.ci.lied or world.script.nature.base_is_broken or bool(brought & _suspicious(world))


def _may_time_out(world: World) -> bool:
    """A fresh look does not help where the host itself shows for long what was before."""
    return not world.script.families.isdisjoint({Family.ODD_CI, Family.SLOWNESS, Family.STALE_READS})


def _brings_nothing(world: World, stay: Stay, tip: Sha) -> bool:
    objects = world.origin.objects
    return objects.merge(tip, stay["prSha"]) == objects.commits[tip].tree


def _tips_since_submission(evidence: SimEvidence, stay: Stay) -> list[Sha]:
    """What somebody takes off the target later was there when it was looked at. Whoever submitted it may never have
    heard an answer."""
    submissions = evidence.answers_to("submitPullRequest")
    asked_at = min((answer.asked_at for answer in submissions if answer.told["id"] == stay["id"]), default=0)
    moves = [(each.place, move.new) for each in evidence.transactions if (move := each.of(evidence.target))]
    first = max((place for place, _ in moves if place < asked_at), default=0)
    return [tip for place, tip in moves if place >= first and tip is not None]


def _brought(world: World, stay: Stay) -> set[str]:
    return {*world.origin.objects.files(stay["prSha"]).values()}


def _suspicious(world: World) -> set[str]:
    return world.truth.bad.union(*world.truth.bad_together)
