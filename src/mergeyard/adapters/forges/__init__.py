"""GitHub, GitLab and Gitea/Forgejo as Git hosts: pull requests, checks, comments and merges over their web APIs.

What they have in common is here:

- `host`: `ForgeHost`, the base class of the three hosts: names, URLs, refs, comments, reactions
- `http`: `ForgeClient`, which sends all requests with a conditional GET cache. It follows a redirect only once, below
  its own base URL, to read the new name of a repository. A 404 is ambiguous on every forge, so the client verifies
  after each one that the repository itself is visible
- `rate_limits`: what a reply says about errors and limits, pauses, paced writes, and what is kept for merges
- `webhooks`: verifying and parsing incoming webhooks

Every forge has the same modules. Each of them contains a class that implements a part of the ports `Host` and `Forge`:

- `host`: the class that inherits from all others; its own part is credentials, comments, labels and roles
- `pull_requests` (GitLab: `merge_requests`): reading pull requests, draft pull requests for test branches, ref polling
- `checks` (Gitea: in `pull_requests`): commit statuses and check runs
- `merging`: the forge's own merge (`provider_merge`), and its outcome when the response was lost
- `diagnostics`: what is missing in the configuration, with instructions
- `rules` (GitHub): branch protection and rulesets, approvals and roles
- `auth` (GitHub): app installations, tokens and permissions
- `wire`: the structs of the API's JSON
"""
