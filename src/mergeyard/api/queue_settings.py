"""The settings of a queue on the wire, drawn from the domain's own: each with its meaning, all of them optional."""

from typing import Annotated, Any

from msgspec import UNSET, UnsetType
from msgspec.structs import fields

from mergeyard.api import reading
from mergeyard.api.reading import Read
from mergeyard.api.wire import says, shown
from mergeyard.domain.config import Config

MEANINGS = {
    "mode": "One line for everybody, or lanes for pull requests that impact different targets.",
    "concurrency": "How many runs of the line may be under way.",
    "bisection_concurrency": "How many runs may search for the guilty one of a red batch, beside `concurrency`.",
    "batch": "Whether several pull requests share one run.",
    "batching_min_size": "The size at which a batch starts at once; also its largest size.",
    "batching_max_wait_time_minutes": "A smaller batch starts when its oldest pull request has waited this long.",
    "can_optimistically_merge": "A green run also speaks for everything beneath it.",
    "pending_failure_depth": "How many batches behind a red one may still clear it.",
    "optimization_mode": "Whether the suspect of a bisection fails without being tested once more.",
    "testing_timeout_minutes": "How long a run may take.",
    "test_retries": "How often a red run is run again before it is judged.",
    "required_statuses": "The statuses that must pass; null leaves the choice to the repository.",
    "merge_method": "How a pull request becomes commits.",
    "landing": "Push the commit that was tested, or ask the provider to merge and compare the trees.",
    "direct_merge_mode": "Whether a pull request that stands green on the tip merges without a run.",
    "create_prs_for_testing_branches": "Opens a draft pull request for every test branch.",
    "comments_enabled": "Tells a pull request's story in a comment on it.",
    "commands_enabled": "Takes commands from comments.",
    "status_check_enabled": "Shows the queue's view of a pull request as a status at the provider.",
    "not_ready_timeout_hours": "How long a pull request may stay not ready; 0 means for ever.",
    "label_commands_enabled": "Submits a pull request when it gets the label, cancels it when it loses it.",
    "enqueueing_label": "Which label that is.",
}
NAMES = tuple(field.name for field in fields(Config))
STATUSES: dict[str, Any] = {
    "anyOf": [{"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}, {"type": "null"}]
}


def _described(name: str, kind: Any) -> Any:
    if name == "required_statuses":
        return Annotated[kind, shown(MEANINGS[name], STATUSES), Read(reading.required_statuses)]
    return Annotated[kind, says(MEANINGS[name])]


SHOWN: list[tuple[str, Any]] = [(field.name, _described(field.name, field.type)) for field in fields(Config)]
"""All of them, as a queue's answer has them."""

GIVEN: list[tuple[str, Any, Any]] = [(name, kind | UnsetType, UNSET) for name, kind in SHOWN]
"""Any of them, as a request may name them."""
