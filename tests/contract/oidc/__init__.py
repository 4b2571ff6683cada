"""The OpenID Connect adapter, against a fake provider that really signs."""
