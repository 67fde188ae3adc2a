"""What a terminal shows: failures, tables, the log, and how far a run is."""
