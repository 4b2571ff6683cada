"""Forgets what nothing can depend on any more, so that the queue stays as small as what it is about."""

from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from mergeyard.domain.queue import Queue
from mergeyard.engine import unchanged


def forget(queue: Queue) -> Queue:
    if unchanged.all_bases(queue):
        return queue
    target = queue.target
    bases = _bases(queue)
    history = target.history
    oldest = next((at for at, landed in enumerate(history) if landed.commit in bases), 0)
    proofs = {commit: proofs for commit, proofs in target.proofs.items() if commit in bases}
    broken = target.broken & bases
    if oldest == 0 and len(proofs) == len(target.proofs) and broken == target.broken:
        return queue
    return replace(queue, target=replace(target, history=history[oldest:], proofs=proofs, broken=broken))


def _bases(queue: Queue) -> set[Sha]:
    """Every commit that somebody stands on, or may be blamed upon."""
    bases = {run.base for run in queue.runs.values()}
    bases.update(step.commit for run in queue.runs.values() for step in run.chain)
    bases.update(bisection.base for bisection in queue.bisections)
    bases.update(bisection.failed.base for bisection in queue.bisections)
    if queue.target.tip is not None:
        bases.add(queue.target.tip)
    return bases
