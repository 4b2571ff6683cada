"""The live kit on a real Gitea: the whole story, compared with our fake of Gitea."""

from tests.forge.gitea_admin import GiteaAdmin
from tests.live import kit
from tests.live.hosts import Access
from tests.live.report import to_markdown

OWNER, SECOND = "kit-owner", "kit-second"


def test_fake_gitea_answers_as_the_real_one(admin: GiteaAdmin):
    tokens = [admin.token_of(name, "all") for name in (OWNER, SECOND)]
    access = Access(
        web_url=admin.url, api_url=f"{admin.url}/api/v1", owner=OWNER, token=tokens[0], second_token=tokens[1]
    )
    report, secrets = kit.run(kit.Plan(kind="gitea", access=access), show=lambda _: None)
    assert report.problems == [], to_markdown(report, secrets)
    assert {step.title for step in report.steps if step.outcome != "run"} == {"An open conversation", "A code owner"}
    assert not admin.request("GET", f"/users/{OWNER}/repos")
    assert not admin.request("GET", f"/users/{SECOND}/repos")
