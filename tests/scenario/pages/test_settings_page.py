"""The settings of a queue: read, changed, refused; and queues created and deleted."""

from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.config import SETTING_DESCRIPTIONS, Config, Mode
from mergeyard.domain.ids import Repo
from mergeyard.domain.pull_requests import StatusState
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, ScenarioSetup, a_scenario
from tests.support.web_client import Page, a_signed_in_client

QUEUE = "git.local/acme/app:main"
HERE = f"/settings/{QUEUE}"


def form_of(page: Page, **changed: str) -> dict[str, str]:
    """The form as it was shown, with these fields changed; an unticked box is not sent."""
    form = next(form for form in page.all("form") if form["action"] == HERE)
    sent = {each["name"]: each["value"] for each in form.all("input") if each["type"] != "checkbox"}
    sent |= {each["name"]: "on" for each in form.all("input") if "checked" in each.attributes}
    sent |= {each["name"]: each.text for each in form.all("textarea")}
    for select in form.all("select"):
        sent[select["name"]] = next(each["value"] for each in select.all("option") if "selected" in each.attributes)
    return {name: value for name, value in (sent | changed).items() if name != "csrf" and value != "untick"}


@asynchronous
async def test_settings_are_shown_with_meaning_value_and_default(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(concurrency=7)) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as visitor,
    ):
        page = await visitor.get(HERE)
        assert page.one("#concurrency")["value"] == "7"
        hint = page.one("#concurrency-hint").text
        assert hint == f"{SETTING_DESCRIPTIONS['concurrency']} From 1 to 1,000. Default: 5."
        assert "Default: off." in page.one("#batch-hint").text
        assert [each.text for each in page.one("#mode-hint").all("code")] == ["single", "parallel"]
        assert "`" not in page.text
        assert "Default: Merge commit (merge_commit)." in page.one("#merge_method-hint").text
        assert [each.text for each in page.one("#mode").all("option")] == [
            "One sequence (single)",
            "Lanes by impacted targets (parallel)",
        ]


@asynchronous
async def test_every_setting_has_its_api_name_as_an_anchor_and_a_mark_if_it_is_modified(tmp_path: Path):
    async with (
        a_scenario(tmp_path, Config(can_optimistically_merge=True)) as scenario,
        a_signed_in_client(scenario) as visitor,
    ):
        page = await visitor.get(HERE)
        setting = page.one("#setting-canOptimisticallyMerge")
        assert setting.one("a")["href"] == "#setting-canOptimisticallyMerge"
        assert setting.one("code").text == "canOptimisticallyMerge"
        assert [each["id"] for each in page.all(".setting") if each.all(".tag")] == ["setting-canOptimisticallyMerge"]
        sections = [link["href"] for link in page.one(".contents").all("a")]
        assert sections == [f"#{section['id']}" for section in page.all("fieldset") if section["id"]]


@asynchronous
async def test_setting_without_effect_says_which_switch_is_off(tmp_path: Path):
    async with a_scenario(tmp_path, Config(batch=True)) as scenario, a_signed_in_client(scenario) as visitor:
        page = await visitor.get(HERE)
        assert not page.one("#setting-batchingMinSize").all(".no-effect")
        depth = page.one("#setting-pendingFailureDepth")
        assert depth.one(".no-effect").text == "No effect while Optimistic merging is off."


@asynchronous
async def test_checks_in_force_are_shown_with_their_source(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        assert "In force now, from .mergeyard.toml: unit" in (await visitor.get(HERE)).one(".in-force").text
        await scenario.update(required_statuses=("<i>lint",))
        page = await visitor.get(HERE)
        assert "In force now, from this queue's settings: <i>lint" in page.one(".in-force").text
        assert not page.one("main").all(".said")


@asynchronous
async def test_without_required_checks_the_page_says_that_nothing_can_merge(tmp_path: Path):
    setup = ScenarioSetup(repository_config="version = 1\n")
    async with a_scenario(tmp_path, setup=setup) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        warning = (await visitor.get(HERE)).one("#nothing-merges")
        assert warning.text.startswith("No required checks: nothing can merge")
        assert warning.classes == ["said", "bad"]
        named = form_of(await visitor.get(HERE), required_statuses="unit")
        page = await visitor.get((await visitor.post(HERE, **named)).location)
        assert not page.all("#nothing-merges")
        assert page.one(".when-cleared").text.startswith("No required checks: nothing can merge")
        cleared = await visitor.post(HERE, **form_of(page, required_statuses=""))
        assert (await visitor.get(cleared.location)).all("#nothing-merges")


@asynchronous
async def test_invalid_repository_configuration_is_explained(tmp_path: Path):
    setup = ScenarioSetup(repository_config="version = 1\nrequired_statuses = 7\n")
    async with a_scenario(tmp_path, setup=setup) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        assert ".mergeyard.toml is not valid: " in (await visitor.get(HERE)).one("#nothing-merges").text


@asynchronous
async def test_checks_that_ran_lately_can_be_ticked(tmp_path: Path):
    setup = ScenarioSetup(repository_config="version = 1\n")
    async with a_scenario(tmp_path, setup=setup) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for name in ("unit", "<i>lint", "e2e"):
            await scenario.report(scenario.origin.tip("main"), StatusState.SUCCESS, name)
        page = await visitor.get(HERE)
        assert [box["value"] for box in page.all("input[name=recent_check]")] == ["<i>lint", "e2e", "unit"]
        form = form_of(page, required_statuses="docs")
        saved = await visitor.post(HERE, **{**form, "recent_check": ["unit", "<i>lint"]})
        assert scenario.queue_actor.queue.config.required_statuses == ("docs", "unit", "<i>lint")
        assert not (await visitor.get(saved.location)).all("input[name=recent_check]")
        page = await visitor.get(f"{HERE}?checks=1")
        assert [box["value"] for box in page.all("input[name=recent_check]")] == ["e2e"]


@asynchronous
async def test_values_in_the_address_are_filled_in_and_not_saved(tmp_path: Path):
    proposal = f"{HERE}?concurrency=9&comments_enabled=off&batch=on"
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN) as visitor,
        a_signed_in_client(scenario, name="reader") as reader,
    ):
        page = await visitor.get(proposal)
        assert "Not saved yet. Concurrency: 5 → 9. Batching: off → on. Status comment: on → off." in page.text
        assert scenario.queue_actor.queue.config == Config()
        assert (await visitor.post(HERE, **form_of(page))).location == f"{HERE}?saved=3"
        saved = Config(concurrency=9, batch=True, comments_enabled=False)
        assert scenario.queue_actor.queue.config == saved
        unsaved = await reader.get(f"{HERE}?concurrency=99")
        assert unsaved.one("#setting-concurrency").one(".value").text == "9"
        assert (await visitor.get(f"{HERE}?concurrency=many")).status == 422


@asynchronous
async def test_only_what_was_changed_is_saved(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        form = form_of(await visitor.get(HERE), mode="parallel", comments_enabled="untick", required_statuses="a\r\nb")
        await scenario.update(concurrency=9)
        saved = await visitor.post(HERE, **form)
        assert saved.location == f"{HERE}?saved=3"
        assert scenario.queue_actor.queue.config == Config(
            mode=Mode.PARALLEL, comments_enabled=False, required_statuses=("a", "b"), concurrency=9
        )
        page = await visitor.get(saved.location)
        assert "3 settings saved." in page.text
        (log,) = [link for link in page.links() if link.startswith("/administration/audit")]
        assert "mode single → parallel" in (await visitor.get(log)).one("tbody").text


@asynchronous
async def test_label_longer_than_the_current_limit_is_kept_until_it_is_changed(tmp_path: Path):
    label = "x" * 101
    async with a_scenario(tmp_path, Config(enqueueing_label=label)) as scenario:
        await scenario.restart()
        async with a_signed_in_client(scenario, Scope.ADMIN) as visitor:
            saved = await visitor.post(HERE, **form_of(await visitor.get(HERE), concurrency="6"))
            assert saved.location == f"{HERE}?saved=1"
            assert scenario.queue_actor.queue.config == Config(enqueueing_label=label, concurrency=6)
            page = await visitor.post(HERE, **form_of(await visitor.get(HERE), enqueueing_label=f"{label}y"))
            assert page.one("#enqueueing_label-trouble").text == "Enter a name of 1 to 100 characters."


@asynchronous
async def test_one_invalid_value_saves_nothing_and_keeps_the_input(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        form = form_of(await visitor.get(HERE), concurrency="a lot", enqueueing_label="<b>go</b>", batch="on")
        page = await visitor.post(HERE, **form)
        assert page.status == 422
        assert page.one("#concurrency-trouble").text == "Enter a number from 1 to 1000."
        assert (page.one("#concurrency")["value"], page.one("#enqueueing_label")["value"]) == ("a lot", "<b>go</b>")
        assert "checked" in page.one("#batch").attributes
        assert scenario.queue_actor.queue.config == Config()
        repaired = await visitor.post(HERE, **form_of(page, concurrency="6"))
        assert repaired.location == f"{HERE}?saved=3"


@asynchronous
async def test_setting_that_cannot_be_changed_now_is_explained_at_its_field(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        await scenario.update(mode=Mode.PARALLEL)
        page = await visitor.post(HERE, **form_of(await visitor.get(HERE), mode="single", test_retries="2"))
        assert page.status == 422
        assert "is still changing its mode" in page.one("#mode-trouble").text
        assert page.one("#test_retries")["value"] == "2"
        assert scenario.queue_actor.queue.config.test_retries == 0


@asynchronous
async def test_reader_sees_the_values_and_cannot_save(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.SUBMIT) as visitor:
        page = await visitor.get(HERE)
        assert "To change settings you need the scope admin" in page.text
        assert not page.all("select")
        assert (await visitor.post(HERE, concurrency=9)).status == 403


@asynchronous
async def test_settings_cannot_be_saved_from_another_site(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        form = form_of(await visitor.get(HERE), concurrency="9")
        assert (await visitor.post(HERE, **form, csrf="guessed")).status == 400
        assert scenario.queue_actor.queue.config == Config()


@asynchronous
async def test_after_creating_a_queue_its_settings_are_shown(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.origin.branch("next", base="main")
        created = await visitor.post("/queues/new", host="git.local", repo="acme/app", branch="next")
        assert created.location == "/settings/git.local/acme/app:next?created=1#setting-requiredStatuses"
        page = await visitor.get(created.location)
        assert "Queue created. Step 2 of 2: check that the required checks are right." in page.text
        assert page.one("#setting-requiredStatuses")


@asynchronous
async def test_queue_that_cannot_be_created_is_explained_at_the_field(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        for repo, branch, field in (
            ("acme/app", "main", "branch"),
            ("acme/app", "gone", "branch"),
            ("acme/app", "mergeyard/x", "branch"),
            ("acme/none", "main", "repo"),
            ("acme/..", "main", "repo"),
            ("app", "main", "repo"),
        ):
            page = await visitor.post("/queues/new", host="git.local", repo=repo, branch=branch)
            assert page.status == 422, (repo, branch)
            assert page.one(f"#{field}-trouble").text
            assert (page.one("#repo")["value"], page.one("#branch")["value"]) == (repo, branch)


@asynchronous
async def test_limited_administrator_sees_only_the_hosts_of_their_repositories(tmp_path: Path):
    elsewhere = (Repo("other.local", "acme", "app"),)
    async with (
        a_scenario(tmp_path) as scenario,
        a_signed_in_client(scenario, Scope.ADMIN, repos=elsewhere) as limited,
        a_signed_in_client(scenario, Scope.ADMIN, repos=(REPO,), name="bob") as bob,
        a_signed_in_client(scenario, Scope.ADMIN, name="eve") as unlimited,
    ):
        assert not (await limited.get("/queues/new")).all("option")
        for visitor in (bob, unlimited):
            assert (await visitor.get("/queues/new")).one("option").text == "git.local"
        refused = await limited.post("/queues/new", host="x.example", repo="acme/app", branch="main")
        assert refused.one("#host-trouble").text == "The host x.example is not configured: check its name."


@asynchronous
async def test_token_cannot_create_a_queue_outside_its_repositories(tmp_path: Path):
    elsewhere = (Repo("git.local", "acme", "other"),)
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN, repos=elsewhere) as visitor:
        scenario.origin.branch("next", base="main")
        page = await visitor.post("/queues/new", host="git.local", repo="acme/app", branch="next")
        assert page.one("#repo-trouble").text == "git.local/acme/app does not exist: check its owner and name."


@asynchronous
async def test_only_an_empty_queue_is_deleted(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        scenario.open(1)
        await scenario.submit(1)
        assert "cannot be deleted while it has 1 pull request." in (await visitor.get(HERE)).text
        assert (await visitor.post("/actions/delete", queue=QUEUE)).status == 409
        await scenario.cancel(1)
        deleted = await visitor.post("/actions/delete", queue=QUEUE)
        assert (deleted.status, deleted.location) == (303, "/")
        assert (await visitor.get(HERE)).status == 404
