"""A fake GitLab: projects with real repositories, users, pipelines and webhooks.

with FakeGitlab(tmp_path) as gitlab:
    project = gitlab.create_project("acme/app")
    gitlab.actions.open_merge_request(project, "topic", by="ada")
    ... gitlab.forge_config() is the configuration of a host that uses it
"""
