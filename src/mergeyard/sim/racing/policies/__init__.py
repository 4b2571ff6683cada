"""Every policy by its name, and what each is allowed to know."""

from collections.abc import Callable

from mergeyard.sim.racing.policies.bors import Bors
from mergeyard.sim.racing.policies.github import GitHub
from mergeyard.sim.racing.policies.gitlab import GitLab
from mergeyard.sim.racing.policies.mergeyard import BATCH, BEST_FIRST, CHAIN, Mergeyard
from mergeyard.sim.racing.policies.oracle import Oracle
from mergeyard.sim.racing.policies.serial import Serial
from mergeyard.sim.racing.policies.speculate_all import SpeculateAll
from mergeyard.sim.racing.policies.submitqueue import SubmitQueue, predictions
from mergeyard.sim.racing.policies.tide import Tide
from mergeyard.sim.racing.policies.zuul import Zuul
from mergeyard.sim.racing.policy import Policy
from mergeyard.sim.racing.trace import Trace

ORACLE = "oracle"

POLICIES: dict[str, Callable[[Trace], Policy]] = {
    ORACLE: lambda trace: Oracle(trace.truth, trace.workload.workers),
    "serial": lambda _: Serial(),
    "zuul": lambda trace: Zuul(trace.workload.workers),
    "github": lambda trace: GitHub(trace.workload.workers),
    "gitlab": lambda trace: GitLab(trace.workload.workers),
    "bors": lambda _: Bors(),
    "tide": lambda trace: Tide(trace.workload.workers),
    "speculate_all": lambda trace: SpeculateAll(trace.workload.workers),
    "submitqueue": lambda trace: SubmitQueue(trace.workload.workers, predictions(trace), trace.workload.conflict),
    "mergeyard_chain": lambda trace: Mergeyard(CHAIN, trace.workload.workers),
    "mergeyard_batch": lambda trace: Mergeyard(BATCH, trace.workload.workers),
    "mergeyard_best_first": lambda trace: Mergeyard(BEST_FIRST, trace.workload.workers),
}
"""Only Oracle sees the truth, and SubmitQueue what a predictor makes of it; the others see what happens."""
