"""Finds those who were taken out though nobody asked for it and nothing was wrong with them."""

from collections.abc import Iterator

from tests.support.evidence import Evidence, Stay

THEIR_PEOPLE_WANTED_IT = frozenset({"cancelled_by_user", "pr_pushed"})
THEIR_TESTS_FAILED = frozenset({"test_run_failed", "failed_by_optimization"})
MAY_BREAK = ("bad", "left", "right")
"""How the paths begin for which the CI turns red."""
MAY_CONFLICT = ("README", "left", "right")


def wronged(evidence: Evidence) -> Iterator[str]:
    for stay in evidence.stays.values():
        if stay["state"] in {"failed", "cancelled"} and not _rightly(evidence, stay):
            yield f"{evidence.name(stay['id'])} is out though it did nothing"


def _rightly(evidence: Evidence, stay: Stay) -> bool:
    reason = stay["reason"]["code"]
    if reason in THEIR_PEOPLE_WANTED_IT:
        return True
    suspicious = MAY_BREAK if reason in THEIR_TESTS_FAILED else MAY_CONFLICT if reason == "merge_conflict" else ()
    return any(path.startswith(suspicious) for path in evidence.paths_changed_by(stay, upon=evidence.tip))
