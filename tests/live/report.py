"""Compares what a Git host answered with what our fake answered, and writes the result for people and for programs."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, to_builtins

from tests.live.shapes import find_wrong_members
from tests.live.stage import Observation, StepResult

EQUAL, DIFFERENT, MEASURED, ONLY_ONE = "equal", "different", "measured", "only on one side"
NOT_MEASURED = "not measured"
HIDDEN = "(secret)"
MAX_ANSWER_LENGTH = 2000


class Comparison(Struct, frozen=True, kw_only=True):
    name: str
    asked: str
    real: Any
    fake: Any
    result: str
    matters: str
    """Why a difference matters; empty if it does not, or if there is none."""
    expected: str
    holds: bool | None
    why: str
    """Why it was not measured."""
    note: str


class ComparedStep(Struct, frozen=True, kw_only=True):
    title: str
    outcome: str
    """`run`, `not measured` or `failed`, at the Git host."""
    why: str
    seconds: float
    comparisons: list[Comparison]


class Report(Struct, frozen=True, kw_only=True):
    host: str
    address: str
    steps: list[ComparedStep]
    requests: int
    cleanup: str
    """What the kit left behind."""
    account: str
    """The account that Mergeyard used."""

    @property
    def comparisons(self) -> list[Comparison]:
        return [one for step in self.steps for one in step.comparisons]

    @property
    def problems(self) -> list[str]:
        """What a maintainer must look at, one sentence each."""
        failed = [f"The step “{step.title}” failed: {step.why}." for step in self.steps if step.outcome == "failed"]
        differing = [
            f"“{step.title}”, {one.name}: the fake answers differently, and {one.matters}."
            for step in self.steps
            for one in step.comparisons
            if one.matters and (one.result == DIFFERENT or (one.result == ONLY_ONE and step.outcome == "run"))
        ]
        unexpected = [
            f"“{step.title}”, {one.name}: not as expected ({one.expected})."
            for step in self.steps
            for one in step.comparisons
            if one.holds is False
        ]
        return [*failed, *differing, *unexpected]

    @property
    def verdict(self) -> str:
        counts, outcomes = Counter(one.result for one in self.comparisons), Counter(one.outcome for one in self.steps)
        differences = counts[DIFFERENT] + counts[ONLY_ONE]
        figures = (
            f"{len(self.steps)} steps: {outcomes['run']} run, {outcomes[NOT_MEASURED]} not measured, "
            f"{outcomes['failed']} failed. "
            f"{counts[EQUAL] + differences} answers compared: {counts[EQUAL]} equal, {differences} different. "
            f"{counts[MEASURED]} more measured, {counts[NOT_MEASURED]} not measured."
        )
        if self.problems:
            return f"{figures} Look at the {len(self.problems)} listed above."
        return f"{figures} Nothing needs attention."


def compare(real: Sequence[StepResult], fake: Sequence[StepResult]) -> list[ComparedStep]:
    by_title = {step.title: step for step in fake}
    return [_compare_step(step, by_title.get(step.title)) for step in real]


def _compare_step(real: StepResult, fake: StepResult | None) -> ComparedStep:
    outcome = "failed" if real.failed else NOT_MEASURED if real.not_measured else "run"
    why = real.failed or real.not_measured
    missing = fake.failed or fake.not_measured if fake else "the run there ended before"
    if outcome == "run" and missing:
        outcome, why = "failed", f"it ran at the Git host, but not at the fake: {missing}"
    fakes = {one.name: one for one in fake.observations} if fake else {}
    shared = [one for one in real.observations if one.name in fakes or not one.is_shape]
    compared = [_compare(one, fakes.pop(one.name, None)) for one in shared]
    if outcome == "run":
        compared += [_only(one, real=None, fake=one.answer) for one in fakes.values() if not one.is_shape]
    return ComparedStep(title=real.title, outcome=outcome, why=why, seconds=real.seconds, comparisons=compared)


def _compare(real: Observation, fake: Observation | None) -> Comparison:
    if fake is None:
        return _only(real, real=real.answer, fake=None)
    if real.is_shape:
        return _compare_shapes(real, fake)
    result = EQUAL if real.answer == fake.answer else DIFFERENT
    if real.is_measured or fake.not_measured:
        result = MEASURED
    if real.not_measured:
        return _to_comparison(fake, real=None, fake=fake.answer, result=NOT_MEASURED, matters="", why=real.not_measured)
    return _to_comparison(
        real, real=real.answer, fake=fake.answer, result=result, matters=real.matters if result == DIFFERENT else ""
    )


def _compare_shapes(real: Observation, fake: Observation) -> Comparison:
    """Only what the fake has and the Git host does not have is shown."""
    wrong = find_wrong_members(real.answer, fake.answer)
    return _to_comparison(
        real,
        real={name: kinds for name, (kinds, _) in wrong.items()} or f"{len(real.answer)} members",
        fake={name: kinds for name, (_, kinds) in wrong.items()} or f"{len(fake.answer)} members",
        result=DIFFERENT if wrong else EQUAL,
        matters=real.matters if wrong else "",
    )


def _only(seen: Observation, *, real: Any, fake: Any) -> Comparison:
    result = NOT_MEASURED if seen.not_measured else ONLY_ONE
    return _to_comparison(seen, real=real, fake=fake, result=result, matters=seen.matters)


def _to_comparison(seen: Observation, *, real: Any, fake: Any, result: str, matters: str, why: str = "") -> Comparison:
    return Comparison(
        name=seen.name,
        asked=seen.asked,
        real=real,
        fake=fake,
        result=result,
        matters=matters,
        expected=seen.expected,
        holds=seen.holds,
        why=why or seen.not_measured,
        note=seen.note,
    )


def to_json(report: Report, secrets: Sequence[str]) -> str:
    content = to_builtins(report) | {"problems": report.problems, "verdict": report.verdict}
    return hide(json.dumps(content, indent=1, ensure_ascii=False), secrets) + "\n"


def to_markdown(report: Report, secrets: Sequence[str]) -> str:
    facts = f"Address: {report.address}. Requests of the kit: {report.requests}. Mergeyard used {report.account}."
    lines = [f"# {report.host} and our fake of it", "", facts, ""]
    for step in report.steps:
        lines += [f"## {step.title}", "", *_describe_outcome(step)]
        for one in step.comparisons:
            lines += _describe_comparison(one)
    lines += ["## Summary", "", "| step | outcome | answers | different | seconds |", "|---|---|---|---|---|"]
    for step in report.steps:
        differing = [one for one in step.comparisons if one.result in (DIFFERENT, ONLY_ONE)]
        cells = [step.title, step.outcome, len(step.comparisons), len(differing), f"{step.seconds:g}"]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    lines += ["", *(f"- {problem}" for problem in report.problems), "", report.verdict, "", report.cleanup]
    return hide("\n".join(lines), secrets) + "\n"


def _describe_outcome(step: ComparedStep) -> list[str]:
    return [] if step.outcome == "run" else [f"{step.outcome.capitalize()}: {step.why}.", ""]


def _describe_comparison(one: Comparison) -> list[str]:
    asked = f" (`{one.asked}`)" if one.asked else ""
    lines = [f"- {one.result}: {one.name}{asked}", ""]
    lines += [f"  {one.why[:1].upper()}{one.why[1:]}.", ""] if one.why else [f"  Git host: `{_shorten(one.real)}`", ""]
    if one.result == NOT_MEASURED and one.fake is not None:
        lines += [f"  Fake: `{_shorten(one.fake)}`", ""]
    if one.result in (DIFFERENT, ONLY_ONE):
        matter = f"Matters: {one.matters}." if one.matters else "Does not matter to Mergeyard."
        lines += [f"  Fake: `{_shorten(one.fake)}`", "", f"  {matter}", ""]
    if one.holds is not None:
        lines += [f"  Expected: {one.expected}. {'As expected.' if one.holds else 'NOT as expected.'}", ""]
    return [*lines, *([f"  {one.note}.", ""] if one.note else [])]


def _shorten(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False).replace("`", "'")[:MAX_ANSWER_LENGTH]


def hide(text: str, secrets: Sequence[str]) -> str:
    """Replaces every secret, also where a JSON text has its line ends as `\\n`."""
    for secret in secrets:
        for form in (secret, json.dumps(secret)[1:-1]):
            text = text.replace(form, HIDDEN) if form else text
    return text
