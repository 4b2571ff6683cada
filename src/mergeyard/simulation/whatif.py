"""Computes a what-if request: actual metrics, replayed metrics, metrics with other settings, and confidence."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from mergeyard.simulation import report
from mergeyard.simulation.engine_driver import SimulationDiverged
from mergeyard.simulation.history import ConfigChange, History, apply_proposed_settings
from mergeyard.simulation.outcomes import OutcomeModel, build_outcome_model
from mergeyard.simulation.process import serve_requests
from mergeyard.simulation.replay import Replay, ReplayResult

DRAWS = 5
"""How often unknown outcomes are drawn, to see how much the result depends on them."""


class WhatIfRequest(Struct, frozen=True):
    history: History
    proposed_settings: dict[str, Any]
    """Proposed values by setting name, applied to the whole period."""


class WhatIfResult(Struct, frozen=True, kw_only=True):
    actual: report.PeriodMetrics
    baseline: report.PeriodMetrics | None
    """With the actual settings; None: the replay did not end. The next field: with the proposed settings."""
    proposed: report.MetricsSpread | None
    confidence: report.Confidence
    reasons: tuple[str, ...]
    assumptions: tuple[report.Assumption, ...]


def compute_whatif(request: WhatIfRequest) -> WhatIfResult:
    history, truth = request.history, build_outcome_model(request.history)
    config_changes = propose_config_changes(history, request.proposed_settings)
    baseline = _replay(history, truth, propose_config_changes(history, {}))
    draws = [baseline]
    if request.proposed_settings:
        draws = [_replay(history, replace(truth, draw=draw), config_changes) for draw in range(DRAWS)]
    completed = [draw for draw in draws if draw is not None]
    findings = report.ReplayFindings(
        history=history,
        outcome_model=truth,
        unknown_facts=report.find_unknown_facts(history, truth, config_changes),
        actual=report.compute_actual_metrics(history),
        baseline=None if baseline is None else report.compute_replayed_metrics(history, baseline),
        proposed=report.compute_spread([report.compute_replayed_metrics(history, draw) for draw in completed])
        if completed == draws
        else None,
        unrecorded_share=_share_of_unrecorded(draws[0]),
        proposed_settings=request.proposed_settings,
    )
    caveats = report.list_caveats(findings)
    return WhatIfResult(
        actual=findings.actual,
        baseline=findings.baseline,
        proposed=findings.proposed,
        confidence=report.overall_confidence(caveats),
        reasons=tuple(caveat.message for caveat in caveats),
        assumptions=report.list_assumptions(history, truth, findings.unknown_facts, draws[0]),
    )


def propose_config_changes(history: History, settings_changes: dict[str, Any]) -> tuple[ConfigChange, ...]:
    """Settings that are not proposed keep their recorded values and changes."""
    return tuple(
        ConfigChange(setting.at, apply_proposed_settings(setting.config, settings_changes))
        for setting in history.config_changes
    )


def _replay(history: History, truth: OutcomeModel, config_changes: Sequence[ConfigChange]) -> ReplayResult | None:
    try:
        return Replay(history, truth, config_changes).run()
    except SimulationDiverged:
        return None


def _share_of_unrecorded(proposed: ReplayResult | None) -> float:
    if proposed is None or not proposed.runs:
        return 0.0
    return sum(not run.is_recorded for run in proposed.runs) / len(proposed.runs)


def respond(request: bytes) -> bytes:
    return json.encode(compute_whatif(json.decode(request, type=WhatIfRequest)))


if __name__ == "__main__":
    serve_requests(respond)
