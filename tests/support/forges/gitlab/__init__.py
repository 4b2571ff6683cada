"""A GitLab for tests: projects with real repositories, people, pipelines and webhooks.

with FakeGitlab(tmp_path) as gitlab:
    project = gitlab.project("acme/app")
    gitlab.acts.open(project, "topic", by="ada")
    ... gitlab.access() is what a host needs to reach it
"""
