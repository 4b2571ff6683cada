"""Writes down which parameters and members GitLab's API description has, for the tests of the fake GitLab.

python tools/gitlab_description.py openapi_v3.yaml "GitLab 19.2"

The first argument is a local copy of `doc/api/openapi/openapi_v3.yaml` from gitlab-org/gitlab, the second says where it
is from. Only facts are kept: paths, names, places and types. Whether a value is a list is not kept, because the
description often leaves it out; a value that can be null is not marked either.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "tests" / "support" / "forges" / "gitlab" / "description.json"
API_ROOT = "/api/v4"
PROJECT = "/projects/{id}"
REQUEST = "/projects/{id}/merge_requests/{merge_request_iid}"
NOTES = "/projects/{id}/merge_requests/{noteable_id}/notes"
OPERATIONS = (
    "GET /user",
    "GET /user/keys",
    "GET /user/gpg_keys",
    "GET /version",
    "GET /namespaces",
    "GET /personal_access_tokens/self",
    "GET /groups/{id}/members/all",
    "POST /projects",
    *(f"{method} {PROJECT}" for method in ("GET", "PUT", "DELETE")),
    f"POST {PROJECT}/fork",
    f"GET {PROJECT}/members/all",
    f"GET {PROJECT}/members/all/{{user_id}}",
    f"POST {PROJECT}/members",
    f"GET {PROJECT}/push_rule",
    f"POST {PROJECT}/approval_rules",
    f"GET {PROJECT}/hooks",
    f"POST {PROJECT}/hooks",
    f"GET {PROJECT}/protected_branches",
    f"POST {PROJECT}/protected_branches",
    f"GET {PROJECT}/protected_branches/{{name}}",
    f"DELETE {PROJECT}/protected_branches/{{name}}",
    f"GET {PROJECT}/repository/branches/{{branch}}",
    f"DELETE {PROJECT}/repository/branches/{{branch}}",
    f"POST {PROJECT}/repository/files/{{file_path}}",
    f"GET {PROJECT}/repository/commits/{{sha}}",
    f"GET {PROJECT}/repository/commits/{{sha}}/statuses",
    f"GET {PROJECT}/repository/commits/{{sha}}/signature",
    f"POST {PROJECT}/statuses/{{sha}}",
    f"GET {PROJECT}/pipelines",
    f"GET {PROJECT}/pipelines/{{pipeline_id}}/jobs",
    f"GET {PROJECT}/pipelines/{{pipeline_id}}/bridges",
    f"GET {PROJECT}/merge_requests",
    f"POST {PROJECT}/merge_requests",
    f"GET {REQUEST}",
    f"PUT {REQUEST}",
    f"PUT {REQUEST}/merge",
    f"GET {REQUEST}/pipelines",
    f"GET {REQUEST}/commits",
    f"POST {REQUEST}/approve",
    f"GET {REQUEST}/approvals",
    f"GET {REQUEST}/approval_state",
    f"GET {REQUEST}/reviewers",
    f"GET {REQUEST}/status_checks",
    "GET /projects/{id}/merge_requests/{noteable_id}/discussions",
    f"GET {NOTES}",
    f"POST {NOTES}",
    f"PUT {NOTES}/{{note_id}}",
    f"GET {REQUEST}/notes/{{note_id}}/award_emoji",
    f"POST {REQUEST}/notes/{{note_id}}/award_emoji",
)
"""What the product calls, what the fake serves, and what the live tests prepare their project with."""


class Description:
    def __init__(self, document: dict[str, Any]) -> None:
        self._paths: dict[str, Any] = document["paths"]
        self._schemas: dict[str, Any] = document["components"]["schemas"]
        self.entities: dict[str, Any] = {}
        """Types of members, by the name of the entity. Filled by what is read."""

    def read_operation(self, operation: str) -> dict[str, Any]:
        method, _, path = operation.partition(" ")
        described = self._paths[f"{API_ROOT}{path}"][method.lower()]
        params = {one["name"]: [one["in"], self._parameter(one["schema"])] for one in described.get("parameters", [])}
        body = self._json_schema(described.get("requestBody", {}))
        members: dict[str, Any] = self._resolve(body).get("properties", {}) if body else {}
        params |= {name: ["body", self._parameter(schema)] for name, schema in members.items()}
        success = next(answer for status, answer in described["responses"].items() if status.startswith("2"))
        schema = self._json_schema(success)
        return {"params": params, "response": self._type(schema) if schema else None}

    def _json_schema(self, described: dict[str, Any]) -> dict[str, Any] | None:
        """A body of a form has the same members as one in JSON."""
        contents = described.get("content", {}).values()
        return next((content["schema"] for content in contents if "schema" in content), None)

    def _parameter(self, schema: dict[str, Any]) -> Any:
        """The list of allowed values, or the type."""
        return schema.get("enum") or self._type(schema)

    def _resolve(self, schema: dict[str, Any]) -> dict[str, Any]:
        return self._schemas[_entity(schema)] if "$ref" in schema else schema

    def _type(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            name = _entity(schema)
            if name not in self.entities:
                self.entities[name] = None
                self.entities[name] = self._type(self._schemas[name])
            return name
        if schema.get("type") == "array":
            return self._type(schema.get("items", {}))
        if properties := schema.get("properties"):
            return {name: self._type(member) for name, member in properties.items()}
        if schema.get("format") in ("date", "date-time"):
            return schema["format"]
        return schema.get("type", "any")


def _entity(schema: dict[str, Any]) -> str:
    return schema["$ref"].rpartition("/")[2]


def read_facts(text: str, source: str) -> dict[str, Any]:
    """The facts of a description, with its origin."""
    description = Description(yaml.load(text, Loader=yaml.CSafeLoader))
    operations = {operation: description.read_operation(operation) for operation in OPERATIONS}
    return {"source": source, "operations": operations, "entities": dict(sorted(description.entities.items()))}


def encode_facts(facts: dict[str, Any]) -> str:
    """One line per operation and entity, so that a comparison of two versions shows what changed."""

    def encode_lines(group: dict[str, Any]) -> Iterable[str]:
        return (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in group.items())

    groups = [f'"{name}": {{\n' + ",\n".join(encode_lines(facts[name])) + "\n}" for name in ("operations", "entities")]
    return "{\n" + ",\n".join([f'"source": {json.dumps(facts["source"])}', *groups]) + "\n}\n"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, source = sys.argv[1:]
    TARGET.write_text(encode_facts(read_facts(Path(path).read_text(), source)))
    print(TARGET.relative_to(ROOT))


if __name__ == "__main__":
    main()
