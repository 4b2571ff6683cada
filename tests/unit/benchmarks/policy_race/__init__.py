"""policy_race."""
