"""All policies by name, and what each is allowed to know."""

from collections.abc import Callable

from benchmarks.policy_race.policies.bors import Bors
from benchmarks.policy_race.policies.github import GitHub
from benchmarks.policy_race.policies.gitlab import GitLab
from benchmarks.policy_race.policies.mergeyard import BATCH, BEST_FIRST, CHAIN, Mergeyard
from benchmarks.policy_race.policies.oracle import Oracle
from benchmarks.policy_race.policies.serial import Serial
from benchmarks.policy_race.policies.speculate_all import SpeculateAll
from benchmarks.policy_race.policies.submitqueue import SubmitQueue, predict_outcomes
from benchmarks.policy_race.policies.tide import Tide
from benchmarks.policy_race.policies.zuul import Zuul
from benchmarks.policy_race.policy import Policy
from benchmarks.policy_race.workload import Trace

ORACLE = "oracle"

POLICIES: dict[str, Callable[[Trace], Policy]] = {
    ORACLE: lambda trace: Oracle(trace.true_outcomes, trace.workload.workers),
    "serial": lambda _: Serial(),
    "zuul": lambda trace: Zuul(trace.workload.workers),
    "github": lambda trace: GitHub(trace.workload.workers),
    "gitlab": lambda trace: GitLab(trace.workload.workers),
    "bors": lambda _: Bors(),
    "tide": lambda trace: Tide(trace.workload.workers),
    "speculate_all": lambda trace: SpeculateAll(trace.workload.workers),
    "submitqueue": lambda trace: SubmitQueue(trace.workload.workers, predict_outcomes(trace), trace.workload.conflict),
    "mergeyard_chain": lambda trace: Mergeyard(CHAIN, trace.workload.workers),
    "mergeyard_batch": lambda trace: Mergeyard(BATCH, trace.workload.workers),
    "mergeyard_best_first": lambda trace: Mergeyard(BEST_FIRST, trace.workload.workers),
}
"""Only Oracle sees the true outcomes, and SubmitQueue a prediction of them; the others see events only."""
