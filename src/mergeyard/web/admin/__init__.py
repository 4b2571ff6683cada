"""Administration pages: API tokens, webhooks and their deliveries, Git hosts, and the audit log with its export.

Every page requires the scope `admin`. A token that is limited to some repositories sees only what concerns those.
"""
