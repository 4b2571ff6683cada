"""Every story is played at every forge, unless it is about one of them; on ordinary days most of them at one only."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from tests.support.forge_scenario import ForgeScenario, a_forge_scenario
from tests.support.meeting_places.every import PLACES

HERE = Path(__file__).parent
ON_ORDINARY_DAYS = "github"
EVERY_DAY_AT_ALL = ("test_submitting.py",)

Stories = Callable[..., AbstractAsyncContextManager[ForgeScenario]]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_elsewhere(item) and HERE in item.path.parents and item.path.name not in EVERY_DAY_AT_ALL:
            item.add_marker(pytest.mark.long)


def _is_elsewhere(item: pytest.Item) -> bool:
    spec = getattr(item, "callspec", None)
    return spec is not None and spec.params.get("story", ON_ORDINARY_DAYS) != ON_ORDINARY_DAYS


@pytest.fixture(params=PLACES)
def story(request: pytest.FixtureRequest, tmp_path: Path) -> Stories:
    """Begins one, with the settings of the queue and the stage as they are given."""
    return partial(a_forge_scenario, tmp_path, PLACES[request.param])


@pytest.fixture
def github_story(tmp_path: Path) -> Stories:
    return partial(a_forge_scenario, tmp_path, PLACES["github"])


@pytest.fixture
def gitea_story(tmp_path: Path) -> Stories:
    return partial(a_forge_scenario, tmp_path, PLACES["gitea"])
