"""Reads the query of an address, for the one endpoint that is asked that way."""

from urllib.parse import parse_qsl

from msgspec import UNSET

from mergeyard.api.errors import misfit
from mergeyard.api.requests import GetMergeQueueMetrics
from mergeyard.service.names import is_owner, is_part_of_a_repository


def metrics_request(query: bytes) -> GetMergeQueueMetrics:
    try:
        pairs = parse_qsl(query.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise misfit("", "the query is not made of `name=value` in UTF-8") from None
    given = [(name, value) for name, value in pairs if name in ("repo", "repoHost")]
    parameters = dict(given)
    if len(parameters) != len(given):
        raise misfit("", "`repo` and `repoHost` may each stand once in the query")
    request = GetMergeQueueMetrics(repo=parameters.get("repo", UNSET), repo_host=parameters.get("repoHost", UNSET))
    if (request.repo is UNSET) != (request.repo_host is UNSET):
        raise misfit("", "`repo` and `repoHost` must stand together in the query")
    if request.only is not None and not _is_named(request.only.host, request.only.owner, request.only.name):
        raise misfit("", "`repo` must be `owner/name`, and `repoHost` the name of its host")
    return request


def _is_named(host: str, owner: str, name: str) -> bool:
    return bool(host) and is_owner(owner) and is_part_of_a_repository(name)
