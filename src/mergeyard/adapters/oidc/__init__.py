"""Single sign-on with OpenID Connect: authorization code flow with PKCE.

- `discovery`: HTTP requests to the provider, its metadata and its signing keys
- `provider`: `OpenIdProvider`, which implements the port `IdentityProvider`: the encrypted login state in the browser,
  the verification of the ID token, and the user's name and groups from its claims
"""
