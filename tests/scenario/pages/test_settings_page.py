"""The settings of a queue: read, changed, refused; and queues created and deleted."""

from pathlib import Path

from mergeyard.domain.access import Scope
from mergeyard.domain.config import Config, Mode
from mergeyard.domain.ids import Repo
from tests.support.asynchronous import asynchronous
from tests.support.scenario import REPO, a_scenario
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
        assert (
            hint
            == "How many test runs can be in progress, not counting those of bisections. From 1 to 1,000. Default: 5."
        )
        assert "Now required: unit, as .mergeyard.toml says." in page.one("#required_statuses-hint").text


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
        assert "3 settings were saved." in (await visitor.get(saved.location)).text


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
            assert page.one("#enqueueing_label-trouble").text == "Give it a name of 1 to 100 characters."


@asynchronous
async def test_one_invalid_value_saves_nothing_and_keeps_the_input(tmp_path: Path):
    async with a_scenario(tmp_path) as scenario, a_signed_in_client(scenario, Scope.ADMIN) as visitor:
        form = form_of(await visitor.get(HERE), concurrency="a lot", enqueueing_label="<b>go</b>", batch="on")
        page = await visitor.post(HERE, **form)
        assert page.status == 422
        assert page.one("#concurrency-trouble").text == "Give a whole number from 1 to 1,000."
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
        assert "sign in with a token that has the scope “admin”" in page.text
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
        assert created.location == "/settings/git.local/acme/app:next"
        assert (await visitor.get(created.location)).status == 200


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
        assert "It has 1 pull request." in (await visitor.get(HERE)).text
        assert (await visitor.post("/actions/delete", queue=QUEUE)).status == 409
        await scenario.cancel(1)
        deleted = await visitor.post("/actions/delete", queue=QUEUE)
        assert (deleted.status, deleted.location) == (303, "/")
        assert (await visitor.get(HERE)).status == 404
