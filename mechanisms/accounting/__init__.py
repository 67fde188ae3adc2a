"""The costs of releases, alone and together."""
