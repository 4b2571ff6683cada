"""What a store must hold to that several replicas share."""
