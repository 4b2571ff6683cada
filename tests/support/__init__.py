"""What tests are written with: builders of values, and stories."""
