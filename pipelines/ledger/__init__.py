"""The ledger: what all releases of one corpus cost together, and a cap that none of them passes."""
