"""The HTTP API: translates between JSON over HTTP and the service. It makes no queue decisions.

`app` builds one Starlette application from the routes of the API and of the pages. A request passes `middleware`, then
`dispatch`: `auth` checks the token, `request_body` reads the body, `validation` turns it into a struct of
`request_schemas`, `auth` checks the scope, a handler (`pull_requests`, `queues`, `webhooks`, …) calls the service, and
`presenting` builds the struct of `response_schemas` that is sent.

`routes.TABLE` lists every endpoint once. A new endpoint needs a row there, its request and response structs, an example
in `examples.json`, a handler in `app` and a method of `mergeyard.client`; tests fail while one of them is missing.
`openapi` derives `/openapi.json`, and with it `docs/reference/api.md`, from the table and the structs.
"""
