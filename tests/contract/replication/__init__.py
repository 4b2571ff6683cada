"""What a store that several replicas share must guarantee."""
