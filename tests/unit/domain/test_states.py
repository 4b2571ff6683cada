"""The states, spelled as the API spells them."""

from mergeyard.domain.states import ACTIVE, TERMINAL, PrState, QueueState, RunStatus


def test_the_states_of_a_pull_request_are_those_of_the_contract():
    names = "not_ready pending testing pending_failure tests_passed merged failed cancelled"
    assert [state.value for state in PrState] == names.split()


def test_merged_failed_and_cancelled_are_the_end():
    assert {PrState.MERGED, PrState.FAILED, PrState.CANCELLED} == TERMINAL


def test_the_states_of_a_queue_are_those_of_the_contract():
    assert [state.value for state in QueueState] == ["RUNNING", "PAUSED", "DRAINING", "SWITCHING_MODES"]


def test_a_run_is_active_until_it_is_decided():
    assert {RunStatus.PREPARING, RunStatus.IN_PROGRESS} == ACTIVE
