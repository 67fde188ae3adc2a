"""The environment of a process: its processor and libraries, the master key, other secrets."""
