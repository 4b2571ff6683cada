"""Fake forges: state and real repositories behind real HTTP, with faults that tests plan.

faults = Faults(app)                          # planned faults between the forge and the product
with serve_in_thread(faults) as url: ...      # on loopback

Each fake has the same modules: `world` (state), `actions` (of users, CI and the forge itself), `rules` (what can be
merged), `payloads` (JSON of API responses), `webhooks`, `api_routes` (handlers), `description` (checks requests and
responses with the published API description) and `fake` (the whole server). GitHub's also has `rulesets`, `pushes`
(what rules refuse to a push), `limits` (rates and API versions) and `graphql`.
"""
