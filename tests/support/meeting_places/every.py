"""All forges at which the stories are played."""

from tests.support.meeting_places.gitea import GiteaPlace
from tests.support.meeting_places.github import GithubPlace
from tests.support.meeting_places.gitlab import GitlabPlace
from tests.support.meeting_places.place import MakePlace

PLACES: dict[str, MakePlace] = {"github": GithubPlace, "gitlab": GitlabPlace, "gitea": GiteaPlace}
