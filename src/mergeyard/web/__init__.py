"""The dashboard: server-rendered pages (Starlette, Jinja2, htmx) with live updates by server-sent events.

- `app`: the table of all pages with the scope that each needs, security headers, error pages
- `rendering`, `formats`: templates, `PageRequest` (what every page gets), labels and URLs
- `user_sessions`, `sign_in`: who is signed in; reading forms, with CSRF checks and size limits
- `queues`, `queue_graph`, `pull_request_list`, `pull_request_page`, `run_page`, `run_progress`, `check_output`,
  `health_page`, `charts`, `whatif_page`, `settings`: pages, and the view structs that their templates read
- `actions`: dialogs and buttons (submit, remove, restart, priority, pause)
- `compression`: sends pages and static files compressed
- `live`: sends a page again when its queue changes
- `admin/`: tokens, webhooks, Git hosts, audit log

Pages decide and store nothing: they call `service`.
"""
