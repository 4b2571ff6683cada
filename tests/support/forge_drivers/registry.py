"""All forges that scenarios run on."""

from tests.support.forge_drivers.driver import MakeForgeDriver
from tests.support.forge_drivers.gitea import GiteaDriver
from tests.support.forge_drivers.github import GithubDriver
from tests.support.forge_drivers.gitlab import GitlabDriver

FORGE_DRIVERS: dict[str, MakeForgeDriver] = {"github": GithubDriver, "gitlab": GitlabDriver, "gitea": GiteaDriver}
