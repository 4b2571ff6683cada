"""The adapter for OpenID providers, against one that really signs."""
