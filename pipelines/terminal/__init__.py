"""The output on a terminal: failures, tables, the log, and the progress of a run."""
