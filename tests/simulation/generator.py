"""Generates a script from a seed: a queue, the actions of people, and the families of faults that are enabled."""

from collections.abc import Iterator
from itertools import chain, combinations
from random import Random

from msgspec.structs import replace

from mergeyard.domain.config import (
    Config,
    DirectMergeMode,
    HeadBranchFallback,
    LandingMethod,
    MergeMethod,
    Mode,
    OptimizationMode,
    Speculation,
)
from mergeyard.domain.states import QueueState
from tests.simulation import script as s
from tests.simulation.faults import Family

MAX_PRS = 7
EVENTFUL_MS = 60_000
AREAS = ("ui", "api", "docs")
PAIRS = tuple(combinations(Family, 2))
PERCENTAGES = {Family.SLOWNESS: (5, 30), Family.LOST_REPLIES: (20, 60), Family.REFUSALS: (30, 100)}
LASTING_FAMILIES = frozenset(
    {
        Family.REFUSALS,
        Family.LOST_REPLIES,
        Family.SLOWNESS,
        Family.STALE_READS,
        Family.LOST_NOTICES,
        Family.ODD_CI,
        Family.STORE,
    }
)
"""Families that affect all calls for a while; the others are single acts."""
LAGS = (0, 100, 200, 300, 500, 1000)
MOMENTS = ("", "", "building", "testing", "bisecting", "landing", "landing")


def draw(seed: int, *, with_reviews: bool = False, with_heads: bool = False) -> s.Script:
    """With reviews: the world has a forge that requires approvals, as some worlds have anyway. With heads: its pull
    requests have head branches, which most queues move when they merge."""
    rng, reviews_rng, heads_rng, life_rng = (
        Random(f"{what} {seed}") for what in ("script", "reviews", "heads", "life")
    )
    families = draw_families(seed, rng)
    has_forge = Family.LOST_NOTICES in families or rng.random() < 0.3 or with_reviews
    has_forge = has_forge or (with_heads and heads_rng.random() < 0.5)
    requires_approval = with_reviews or (has_forge and reviews_rng.random() < 0.5)
    hides_reviews = requires_approval and reviews_rng.random() < 0.5
    replicas = rng.choice((2, 3)) if Family.FREEZES in families else rng.choice((1, 1, 2))
    prs = rng.randrange(2, MAX_PRS + 1)
    config, nature = draw_config(rng, has_forge=has_forge), draw_nature(rng, prs)
    acts = [*_submissions(rng, prs, config, nature), *_everyday_acts(rng, prs)]
    for family in sorted(families):
        acts += _faults(family, rng, prs)
    heads = draw_heads(heads_rng, prs, has_forge=has_forge) if with_heads else None
    if heads is not None:
        config = _moving_heads(heads_rng, config, has_forge=has_forge)
        acts += _author_acts(heads_rng, prs, heads, families)
    by_queue = _always_pushed_by_queue(config, acts)
    nature, later = _draw_life(life_rng, prs, nature, reviewed=requires_approval)
    # Known: a landing one by one takes each commit for its own that names one of its pull requests.
    acts += [each for each in later if by_queue or not _has_trailers(each)]
    if requires_approval:
        acts += _reviews(reviews_rng, prs, kills=Family.KILLS in families)
    return s.Script(
        seed=seed,
        config=config,
        replicas=replicas,
        has_forge=has_forge,
        requires_approval=requires_approval,
        hides_reviews=hides_reviews,
        statuses=rng.choice((("unit",), ("unit", "lint"))),
        families=families,
        nature=nature,
        heads=heads,
        acts=tuple(sorted(acts, key=lambda act: act.at)),
    )


def draw_families(seed: int, rng: Random) -> frozenset[Family]:
    """None, one, two, or any number of families: every pair regularly occurs alone."""
    match seed % 4:
        case 0:
            return frozenset(rng.sample(tuple(Family), rng.randrange(2)))
        case 1 | 2:
            return frozenset(PAIRS[seed // 2 % len(PAIRS)])
        case _:
            return frozenset(family for family in Family if rng.random() < 0.5)


def draw_config(rng: Random, *, has_forge: bool) -> Config:
    landing = LandingMethod.PROVIDER_MERGE if rng.random() < 0.25 else LandingMethod.TESTED_COMMIT
    by_forge = has_forge and landing is LandingMethod.PROVIDER_MERGE
    methods = (MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH) if by_forge else tuple(MergeMethod)
    return Config(
        mode=rng.choice(tuple(Mode)),
        concurrency=rng.choice((1, 2, 3, 5, 9)),
        bisection_concurrency=rng.choice((1, 2)),
        batch=rng.random() < 0.5,
        batching_min_size=rng.choice((2, 3)),
        batching_max_wait_time_minutes=rng.choice((0, 1)),
        can_optimistically_merge=rng.random() < 0.35,
        pending_failure_depth=rng.choice((0, 1, 2)),
        optimization_mode=rng.choice(tuple(OptimizationMode)),
        testing_timeout_minutes=rng.choice((1, 2, 300)),
        test_retries=rng.choice((0, 0, 1)),
        merge_method=rng.choice(methods),
        landing=landing,
        direct_merge_mode=rng.choice((DirectMergeMode.OFF, DirectMergeMode.ALWAYS)),
        speculation=rng.choice(tuple(Speculation)),
    )


def draw_heads(rng: Random, prs: int, *, has_forge: bool) -> s.Heads:
    """On plain Git there are no forks, and one push moves all branches."""
    numbers = range(1, prs + 1)
    forks = [number for number in numbers if has_forge and rng.random() < rng.choice((0.0, 0.3))]
    closed, special = rng.choice((0.0, 0.3)), rng.choice((0.0, 0.0, 0.2))
    moved_first = has_forge and rng.random() < 0.8
    return s.Heads(
        moved_first=moved_first,
        closes_merged=rng.random() < 0.5,
        shown_after_ms=rng.choice((0, 0, 200, 1000, 5000, 20_000, 90_000)) if moved_first else 0,
        in_forks=tuple(forks),
        in_closed_forks=tuple(number for number in forks if rng.random() < closed),
        protected=tuple(number for number in numbers if has_forge and rng.random() < special),
        refused=tuple(number for number in numbers if rng.random() < special),
    )


def _moving_heads(rng: Random, config: Config, *, has_forge: bool) -> Config:
    """This simulated forge merges with merge commits and squashed commits only."""
    method = rng.choice((MergeMethod.MERGE_COMMIT, *(MergeMethod.SQUASH, MergeMethod.REBASE) * 3))
    fallbacks = (HeadBranchFallback.CLOSE,) if has_forge and method is MergeMethod.REBASE else tuple(HeadBranchFallback)
    by_forge = (
        config.landing is LandingMethod.PROVIDER_MERGE and method is not MergeMethod.REBASE and rng.random() < 0.3
    )
    return replace(
        config,
        merge_method=method,
        landing=LandingMethod.PROVIDER_MERGE if by_forge else LandingMethod.TESTED_COMMIT,
        move_head_branches=rng.random() < 0.9,
        head_branch_fallback=rng.choice(fallbacks),
        delete_head_branches=rng.random() < 0.3,
    )


HEAD_MOMENTS = ("", "testing", *("landing",) * 6)
HEAD_LAGS = (0, 50, 100, 150, 200, 250, 300, 350, 400, 500, 600, 800, 1000, 1500, 3000)


def _author_acts(rng: Random, prs: int, heads: s.Heads, families: frozenset[Family]) -> Iterator[s.Act]:
    """Authors push, rebase and delete their head branches, mostly during a landing. Some servers are killed then."""
    kinds = (s.Push, s.Push, s.RewriteHead, s.RewriteHead, s.PullAndPush, s.DeleteHead, s.RestoreHead)
    lags = (*HEAD_LAGS, *(heads.shown_after_ms + lag for lag in HEAD_LAGS[:8]))
    for number in range(1, prs + 1):
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            at, during, lag = rng.randrange(EVENTFUL_MS), rng.choice(HEAD_MOMENTS), rng.choice(lags)
            yield rng.choice(kinds)(at=at, pr=number, during=during, lag=lag)
    for _ in range(rng.choice((0, 1, 2, 4)) if Family.KILLS in families else 0):
        at, down, disk = rng.randrange(EVENTFUL_MS), rng.choice((100, 3000, 30_000)), rng.random() < 0.2
        yield s.Kill(
            at=at, replica=rng.randrange(3), for_ms=down, loses_its_disk=disk, during="landing", lag=rng.choice(lags)
        )
    changes = (("moveHeadBranches", rng.random() < 0.5), ("deleteHeadBranches", rng.random() < 0.5))
    for setting, value in changes if Family.USER_REQUESTS in families else ():
        at, during, lag = rng.randrange(EVENTFUL_MS), rng.choice(HEAD_MOMENTS), rng.choice(lags)
        yield s.Change(at=at, setting=setting, value=value, during=during, lag=lag)


def draw_nature(rng: Random, prs: int) -> s.Nature:
    numbers = range(1, prs + 1)
    broken, failure_chance, overlap_chance = (
        rng.random() < 0.08,
        rng.choice((0.05, 0.2, 0.4)),
        rng.choice((0.05, 0.1, 0.4)),
    )
    return s.Nature(
        bad=tuple(number for number in numbers if rng.random() < failure_chance),
        bad_pairs=tuple(pair for pair in combinations(numbers, 2) if rng.random() < 0.03),
        sharing=tuple(number for number in numbers if rng.random() < overlap_chance),
        stacked_on=tuple((number, rng.randrange(1, number)) for number in numbers[1:] if rng.random() < overlap_chance),
        base_is_broken=broken,
        repaired_by=rng.choice(numbers) if broken else 0,
    )


def _always_pushed_by_queue(config: Config, acts: list[s.Act]) -> bool:
    changes = [act for act in acts if isinstance(act, s.Change) and act.setting == "landing"]
    return config.landing is LandingMethod.TESTED_COMMIT and not changes


def _has_trailers(act: s.Act) -> bool:
    return isinstance(act, s.PushForged) or (isinstance(act, s.PushRevert) and act.again)


def _draw_life(rng: Random, prs: int, nature: s.Nature, *, reviewed: bool) -> tuple[s.Nature, Iterator[s.Act]]:
    """What a repository has only after a while, in half of the worlds: merges are reverted, by pull requests or by
    pushes, and land again."""
    if rng.random() < 0.5:
        return nature, iter(())
    good = [number for number in range(1, prs + 1) if number not in nature.bad] or [1]
    reverting, again, picking = (prs + 1, rng.choice(good)), (prs + 2, rng.choice(good)), (prs + 3, rng.choice(good))
    if rng.random() < 0.7:
        again = (again[0], reverting[1])
    others = [number for number in range(1, prs + 3) if rng.random() < 0.15]
    nature = replace(
        nature,
        reverting=(reverting,),
        landing_again=(again,),
        picking=(picking,),
        forging=tuple((number, rng.choice(range(1, prs + 1))) for number in others if rng.random() < 0.7),
        undoing=tuple(number for number in others if rng.random() < 0.5),
    )
    return nature, _later_acts(rng, reverting, again, picking, reviewed=reviewed)


def _later_acts(
    rng: Random,
    reverting: tuple[int, int],
    again: tuple[int, int],
    picking: tuple[int, int],
    *,
    reviewed: bool,
) -> Iterator[s.Act]:
    at = rng.randrange(EVENTFUL_MS // 2, EVENTFUL_MS)
    if rng.random() < 0.4:
        yield s.PushRevert(at=at, pr=reverting[1])
    else:
        yield from _later_submission(rng, at, reverting[0], reviewed=reviewed)
    for number in rng.sample((again[0], picking[0]), rng.choice((1, 1, 2))):
        at += rng.randrange(EVENTFUL_MS // 2)
        yield from _later_submission(rng, at, number, reviewed=reviewed)
    for _ in range(rng.choice((0, 0, 1, 2))):
        lag, during, pr = rng.choice(LAGS), rng.choice(MOMENTS), rng.choice((*again, *picking))
        run, picks = rng.choice((None, 0, 1, 2)), rng.random() < 0.5
        act = s.PushForged(at=rng.randrange(at), pr=pr, run=run, picks=picks, during=during, lag=lag)
        yield rng.choice((act, s.PushRevert(at=at, pr=pr, again=rng.random() < 0.5)))


def _later_submission(rng: Random, at: int, pr: int, *, reviewed: bool) -> Iterator[s.Act]:
    yield s.Upload(at=at, pr=pr)
    if reviewed:
        yield s.Approve(at=at + 1, pr=pr)
    yield s.Submit(at=at + rng.randrange(10, 2000), pr=pr)


def _submissions(rng: Random, prs: int, config: Config, nature: s.Nature) -> Iterator[s.Act]:
    entangled = {*chain(*nature.bad_pairs, *nature.stacked_on), nature.repaired_by}
    for number in range(1, prs + 1):
        at = rng.randrange(EVENTFUL_MS // 2)
        if config.mode is Mode.PARALLEL or rng.random() < 0.3:
            yield s.Upload(at=at, pr=number, targets=None if number in entangled else _targets(rng))
        yield s.Submit(
            at=at + rng.randrange(2000),
            pr=number,
            priority=rng.choice((None, None, None, 0, 10, 200)),
            no_batch=rng.choice((None, None, True)),
            forced=rng.choice((None, None, None, True)),
        )


def _targets(rng: Random) -> tuple[str, ...] | None:
    """Entangled pull requests never get here: they always impact ALL."""
    return None if rng.random() < 0.2 else tuple(rng.sample(AREAS, rng.choice((1, 1, 2))))


def _everyday_acts(rng: Random, prs: int) -> Iterator[s.Act]:
    """Actions that happen in any queue now and then."""
    kinds = (s.Cancel, s.Submit, s.Restart, *(s.ReportOnHead,) * 3, s.Push, s.Close)
    for _ in range(rng.randrange(6)):
        yield rng.choice(kinds)(at=rng.randrange(EVENTFUL_MS), pr=rng.randrange(1, prs + 1))


def _reviews(rng: Random, prs: int, *, kills: bool) -> Iterator[s.Act]:
    """Approvals are given, withdrawn and given again in all phases of the queue."""
    for number in range(1, prs + 1):
        at = rng.randrange(EVENTFUL_MS // 2)
        yield s.Approve(at=at, pr=number)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            at = rng.randrange(at, EVENTFUL_MS)
            during, lag = rng.choice(MOMENTS), rng.choice(LAGS)
            yield s.Withdraw(at=at, pr=number, during=during, lag=lag)
            if kills and during == "landing":
                killed = lag - rng.choice((0, 100, 200))
                yield s.Kill(
                    at=at,
                    replica=rng.randrange(3),
                    for_ms=rng.choice((3000, 30_000)),
                    during=during,
                    lag=max(killed, 0),
                )
            if rng.random() < 0.6:
                later = at + rng.choice((500, 5000, 30_000))
                yield s.Approve(at=later, pr=number, during=rng.choice(MOMENTS), lag=rng.choice(LAGS))


def _faults(family: Family, rng: Random, prs: int) -> Iterator[s.Act]:
    for _ in range(rng.choice((1, 2, 4, 6))):
        at = rng.randrange(EVENTFUL_MS)
        if family in LASTING_FAMILIES:
            percent = rng.choice(PERCENTAGES.get(family, (30, 60, 100)))
            lasting, during, lag = rng.choice((2000, 10_000, 30_000)), rng.choice(MOMENTS), rng.choice(LAGS)
            yield s.FaultPeriod(at=at, of=family, for_ms=lasting, percent=percent, during=during, lag=lag)
        else:
            act = _fault(family, rng, at, rng.randrange(1, prs + 1))
            yield replace(act, during=rng.choice(MOMENTS), lag=rng.choice(LAGS))


def _fault(family: Family, rng: Random, at: int, pr: int) -> s.Act:
    replica = rng.randrange(3)
    match family:
        case Family.KILLS:
            down, disk = rng.choice((100, 3000, 30_000)), rng.random() < 0.2
            return s.Kill(at=at, replica=replica, for_ms=down, loses_its_disk=disk)
        case Family.FREEZES:
            return s.Freeze(at=at, replica=replica, for_ms=rng.choice((3000, 12_000, 40_000)))
        case Family.CLOCKS:
            by = rng.choice((-86_400_000, -3_600_000, -30_000, 30_000, 3_600_000, 86_400_000))
            return s.JumpClock(at=at, replica=replica, by_ms=by, for_ms=rng.choice((5000, 60_000)))
        case Family.FOREIGN_PUSHES:
            return rng.choice((s.PushToTarget(at=at), *(s.RewindTarget(at=at),) * 2, s.MergeByHand(at=at, pr=pr)))
        case Family.AUTHORS:
            kinds = (s.Push, s.Close, s.Reopen, s.Retarget, s.Submit)
            return rng.choice((*(kind(at=at, pr=pr) for kind in kinds), s.DeleteTestBranch(at=at, which=pr)))
        case Family.USER_REQUESTS:
            return _user_request(rng, at, pr)
        case _:
            raise AssertionError(f"{family} is not an act")


def _user_request(rng: Random, at: int, pr: int) -> s.Act:
    states = (QueueState.RUNNING, QueueState.PAUSED, QueueState.DRAINING)
    changes: tuple[tuple[str, object], ...] = (
        ("mode", rng.choice(tuple(Mode)).value),
        ("concurrency", rng.choice((1, 2, 5))),
        ("batch", rng.random() < 0.5),
        ("canOptimisticallyMerge", rng.random() < 0.5),
        ("landing", rng.choice(tuple(LandingMethod)).value),
        ("mergeMethod", rng.choice((MergeMethod.MERGE_COMMIT, MergeMethod.SQUASH)).value),
        ("testRetries", rng.choice((0, 1, 2))),
        ("speculation", rng.choice(tuple(Speculation)).value),
    )
    setting, value = rng.choice(changes)
    return rng.choice(
        (
            s.Cancel(at=at, pr=pr),
            s.Submit(at=at, pr=pr, priority=rng.choice((0, 1, 10, 255))),
            s.Restart(at=at, pr=pr),
            s.SetState(at=at, state=rng.choice(states)),
            s.Change(at=at, setting=setting, value=value),
        )
    )
