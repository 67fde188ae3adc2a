"""What a privacy definition needs: samplers, mechanisms, guarantees, accounting."""
