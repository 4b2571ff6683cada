"""Pages for administrators: tokens, webhooks, hosts and the audit log."""
