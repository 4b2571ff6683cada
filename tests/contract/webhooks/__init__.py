"""Sending of webhooks to allowed addresses only, and encryption of secrets."""
