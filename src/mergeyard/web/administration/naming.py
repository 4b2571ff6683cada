"""Understands the repositories and branches that somebody typed in, one per line."""

from collections.abc import Iterator

from mergeyard.domain.repositories import Repo
from mergeyard.domain.webhooks import Topic
from mergeyard.service.errors import Code, Refused
from mergeyard.service.site import Sites
from mergeyard.web.visiting import Visitor

MOST = 100


def topics_typed(text: str, visitor: Visitor, sites: Sites) -> tuple[Topic, ...]:
    """Each `host/owner/name`, or one of its branches: `host/owner/name:main`."""
    return tuple(dict.fromkeys(_named(line, visitor, sites) for line in _lines(text)))


def repos_typed(text: str, visitor: Visitor, sites: Sites) -> tuple[Repo, ...]:
    topics = topics_typed(text, visitor, sites)
    for topic in topics:
        if topic.branch is not None:
            raise Refused(Code.INVALID_REQUEST, f"Name repositories, not branches: leave :{topic.branch[:100]} out.")
    return tuple(topic.repo for topic in topics)


def topic_typed(text: str) -> Topic:
    """As it was typed. The host may have a port, so the branch stands behind the colon after the first slash."""
    host, _, path = text.partition("/")
    path, _, branch = path.partition(":")
    repo = Repo.parse(f"{host}/{path}")
    if repo is None:
        raise Refused(Code.INVALID_REQUEST, f"“{text[:100]}” names no repository: write host/owner/name.")
    return Topic(repo, branch or None)


def typed(topic: Topic) -> str:
    return str(topic.repo) + (f":{topic.branch}" if topic.branch else "")


def _named(line: str, visitor: Visitor, sites: Sites) -> Topic:
    topic = topic_typed(line)
    repo = sites.repo(topic.repo, visitor.token)
    if not visitor.token.sees(repo):
        raise Refused(Code.INVALID_REQUEST, f"Your token does not reach {str(repo)[:200]}: leave it out.")
    return Topic(repo, topic.branch)


def _lines(text: str) -> Iterator[str]:
    lines = text.split()
    if len(lines) > MOST:
        raise Refused(Code.INVALID_REQUEST, f"These are {len(lines)} lines, and {MOST} is the most: name fewer.")
    yield from lines
