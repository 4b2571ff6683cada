"""What a question is answered: figures beside figures, how sure they are, and what was guessed."""

from msgspec import json
from msgspec.structs import replace

from mergeyard.domain.config import Config
from mergeyard.domain.instants import MINUTE
from mergeyard.sim.replaying.guesses import About
from mergeyard.sim.replaying.history import History, Setting
from mergeyard.sim.replaying.sureness import Sureness
from mergeyard.sim.replaying.whatif import Answer, Question, answer
from tests.support.pasts_to_replay import a_past, green, left, merged, minute, red


def a_steady_day(count: int = 120) -> History:
    """Every half an hour one comes, is tested for ten minutes, and merges."""
    return a_past(
        *(merged(at=30 * place, until=30 * place + 10) for place in range(count)),
        runs=[green(place, since=30 * place, until=30 * place + 10) for place in range(count)],
    )


def asked(history: History, **wishes: object) -> Answer:
    return answer(Question(history, dict(wishes)))


def test_where_nothing_is_unknown_the_replay_has_no_error_of_its_own():
    found = asked(a_steady_day())
    assert found.replayed == found.really
    assert (found.really.merged, found.really.runs, found.really.runs_per_merge) == (120, 120, 1)
    assert (found.really.median, found.really.slow, found.really.spent) == (10 * MINUTE, 10 * MINUTE, 1200 * MINUTE)
    assert (found.sureness, found.reasons, found.guesses) == (Sureness.WELL, (), ())


def test_a_wish_changes_the_last_column_and_no_other():
    found = asked(a_steady_day(), batch=True, batching_min_size=2, batching_max_wait_time_minutes=30)
    assert found.changed is not None
    assert found.replayed == found.really
    assert found.changed.middle.merged == 120
    assert 55 <= found.changed.middle.runs <= 65
    assert found.changed.least.spent < found.changed.middle.spent < found.changed.most.spent


def test_a_few_merges_are_too_few_to_tell():
    assert asked(a_steady_day(19), concurrency=1).sureness is Sureness.HARDLY
    assert asked(a_steady_day(99), concurrency=1).sureness is Sureness.ROUGHLY
    (reason,) = asked(a_steady_day(19), concurrency=1).reasons
    assert (
        reason == "Only 19 pull requests merged in this time: choose a longer period, or ask again when 20 have merged."
    )


def test_nothing_at_all_says_what_to_do():
    found = asked(a_past(), concurrency=3)
    assert (found.really.merged, found.really.median, found.really.runs_per_merge) == (0, None, None)
    assert found.reasons[0].startswith("Nothing merged in this time: choose a longer period")


def test_the_replays_own_error_is_told():
    past = a_steady_day()
    slow = replace(
        past, arrivals=tuple(replace(each, ended_at=minute(each.at / MINUTE + 20)) for each in past.arrivals)
    )
    found = asked(slow, concurrency=2)
    assert found.sureness is Sureness.HARDLY
    assert found.reasons[0].startswith("Replayed as it was, the median time to merge is 50 % off what it really was")


def test_what_is_guessed_is_counted_and_makes_it_less_sure():
    past = a_steady_day()
    gone = a_past(*past.arrivals, *(left(at=30 * place, until=30 * place + 5) for place in range(40)), runs=past.runs)
    found = asked(gone, concurrency=2)
    guessed = {guess.about: (guess.count, guess.of) for guess in found.guesses}
    assert (guessed[About.OUTCOMES], guessed[About.LENGTHS]) == ((40, 160), (40, 160))
    assert "Of 25 % of the pull requests history does not tell all, so something is guessed." in found.reasons


def test_without_impacted_targets_lanes_cannot_be_foreseen():
    found = asked(a_steady_day(), mode="parallel")
    assert found.sureness is Sureness.HARDLY
    (guess,) = [guess for guess in found.guesses if guess.about is About.TARGETS]
    assert guess.words == "120 of 120 pull requests have no impacted targets: they are taken to impact ALL."


def test_a_setting_that_was_changed_meanwhile_is_compared_with_a_mixture():
    past = a_steady_day()
    moved = replace(past, settings=(*past.settings, Setting(minute(100), Config(concurrency=7))))
    assert asked(moved, batch=True).sureness is Sureness.WELL
    found = asked(moved, concurrency=9)
    assert found.sureness is Sureness.ROUGHLY
    assert found.reasons[0].startswith("Concurrency was changed within this time")


def test_a_change_of_settings_that_cannot_be_read_is_told():
    found = asked(replace(a_steady_day(), unread=2), concurrency=9)
    assert found.sureness is Sureness.ROUGHLY
    (guess,) = found.guesses
    assert (guess.about, guess.count, guess.of) == (About.SETTINGS, 2, 2)


def test_a_target_that_was_broken_is_not_replayed_and_that_is_told():
    past = a_steady_day()
    broken = replace(past, runs=(*past.runs, replace(red(since=5, until=6, tests=0), base=past.arrivals[0].head)))
    found = asked(broken, concurrency=9)
    assert "The target itself failed its tests 1 time, which is not replayed." in found.reasons


def test_who_is_not_counted_is_replayed_all_the_same():
    past = a_past(
        merged(at=0, until=10, counted=False),
        merged(at=0, until=20),
        runs=[green(0, since=0, until=10), green(0, 1, since=10, until=20)],
        concurrency=1,
    )
    found = asked(past)
    assert found.really == found.replayed
    assert (found.really.merged, found.really.runs, found.really.median) == (1, 1, 20 * MINUTE)


def test_a_question_and_its_answer_can_be_sent_to_another_process():
    question = Question(a_steady_day(3), {"mode": "parallel", "concurrency": 3})
    again = json.decode(json.encode(question), type=Question)
    assert again == question
    assert json.decode(json.encode(answer(again)), type=Answer) == answer(question)
