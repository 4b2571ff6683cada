"""GitHub as a Git host, authenticated as a GitHub App or with a personal access token.

Required checks come from branch protection and rulesets (`rules`); a check that is bound to an app counts only from
that app (`checks`). Installation tokens expire after an hour and are renewed before (`auth`).
"""
