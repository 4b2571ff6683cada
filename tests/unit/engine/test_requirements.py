"""Which statuses a run must pass."""

from msgspec.structs import replace

from mergeyard.domain import events as e
from mergeyard.domain.queue import Queue
from mergeyard.domain.reasons import Reason
from mergeyard.domain.required import Required, RequiredSource
from mergeyard.domain.states import PrState
from mergeyard.engine import requirements
from tests.support.builders import a_config, a_plain_queue, a_run, a_yard


def asking_for(required: Required, *, settings: tuple[str, ...] | None = None) -> Queue:
    queue = a_plain_queue(config=a_config(required_statuses=settings))
    return replace(queue, target=replace(queue.target, required=required))


def test_the_queues_own_word_comes_first():
    queue = asking_for(Required(("unit",)), settings=("lint",))
    assert requirements.required(queue) == Required(("lint",), RequiredSource.MERGE_INSTANCE)


def test_without_it_the_repository_is_asked():
    required = Required(("unit",), RequiredSource.BRANCH_PROTECTION)
    assert requirements.required(asking_for(required)) == required


def test_a_repository_with_statuses_lacks_nothing():
    assert requirements.missing(asking_for(Required(("unit",)))) is None


def test_nothing_merges_untested():
    assert requirements.missing(asking_for(Required())) is Reason.NO_REQUIRED_STATUSES


def test_a_configuration_that_cannot_be_read_hinders_everything():
    broken = Required(("unit",), config_error="line 3")
    assert requirements.missing(asking_for(broken)) is Reason.CONFIG_INVALID


def test_the_queues_own_word_makes_up_for_a_configuration_that_cannot_be_read():
    broken = Required(config_error="line 3")
    assert requirements.missing(asking_for(broken, settings=("lint",))) is None


def test_a_run_with_the_statuses_of_today_counts():
    assert requirements.outgrown(asking_for(Required(("unit",))), a_run(1)) is None


def test_a_run_with_more_statuses_than_today_counts():
    run = replace(a_run(1), required=("unit", "lint"))
    assert requirements.outgrown(asking_for(Required(("unit",))), run) is None


def test_a_run_with_fewer_statuses_than_today_counts_no_longer():
    queue = asking_for(Required(("unit", "lint")))
    assert requirements.outgrown(queue, a_run(1)) is Reason.REQUIRED_STATUSES_CHANGED


def test_when_more_is_required_a_run_under_way_starts_again():
    yard = a_yard(prs=1)
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    assert (yard.reason(1), yard.run_of(1).required) == (Reason.REQUIRED_STATUSES_CHANGED, ("unit", "lint"))


def test_when_more_is_required_one_that_passed_is_tested_again():
    yard = a_yard(prs=2)
    yard.passes(2)
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=("unit", "lint"))))
    assert (yard.state(2), yard.reason(2)) == (PrState.PENDING, Reason.REQUIRED_STATUSES_CHANGED)


def test_when_less_is_required_a_run_under_way_keeps_what_it_started_with():
    yard = a_yard(prs=1, required_statuses=("unit", "lint"))
    run = yard.run_of(1)
    yard.tell(e.SettingsSaved(config=a_config(required_statuses=("unit",))))
    assert yard.run_of(1) == run
