"""What a repository's refs say when they are read again: who moved, and what is news to a queue."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct

from mergeyard.domain.events import Event, PullTouched, TargetTouched
from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.ports.host import Host
from mergeyard.service.naming_branches import branch_ref
from mergeyard.service.turn import Keeper

Refs = Mapping[str, Sha]
Heads = Mapping[PrNumber, Sha]


class Reading(Struct, frozen=True):
    refs: Refs
    heads: Heads


def differing(refs: Refs, before: Refs) -> set[str]:
    return set() if refs is before else {ref for ref, _ in refs.items() ^ before.items()}


def heads(host: Host, refs: Refs, changed: set[str] | None, before: Heads) -> Heads:
    """Where nothing changed, nothing is read again."""
    numbered = ((host.number_of(ref), ref) for ref in (refs if changed is None else changed))
    moved = [(number, ref) for number, ref in numbered if number is not None and ref == host.head_ref(number)]
    if not moved:
        return before
    gone = {number for number, ref in moved if ref not in refs}
    there = {**before, **{number: refs[ref] for number, ref in moved if ref in refs}}
    return {number: head for number, head in there.items() if number not in gone} if gone else there


def moves_a_commit(host: Host, ref: str) -> bool:
    number = host.number_of(ref)
    return number is None or ref == host.head_ref(number)


def traces(host: Host, refs: Refs, changed: set[str] | None) -> dict[PrNumber, str]:
    """What is there now of each pull request of which something changed."""
    touched = {host.number_of(ref) for ref in (refs if changed is None else changed)}
    found = defaultdict[PrNumber, list[str]](list)
    for ref in sorted(refs):
        number = host.number_of(ref)
        if number is not None and number in touched:
            found[number].append(refs[ref])
    return {number: " ".join(trace) for number, trace in found.items()}


def news(keeper: Keeper, host: Host, refs: Refs, changed: set[str] | None) -> Iterator[Event]:
    """At the first reading anything may have happened since we last looked."""
    if changed is None or refs.get(branch_ref(keeper.key.branch)) != keeper.queue.target.tip:
        yield TargetTouched()
    every = {stay.number for stay in keeper.queue.submissions.values()} if changed is None else set[PrNumber]()
    touched = {host.number_of(ref) for ref in changed or ()}
    for number in every | {number for number in touched if number is not None}:
        if keeper.is_concerned(number):
            yield PullTouched(number=number)
