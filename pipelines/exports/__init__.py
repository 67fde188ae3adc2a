"""Cards in the forms that others take: each is a function of `release.json` alone."""
