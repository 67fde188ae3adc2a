"""What releases cost, alone and together."""
