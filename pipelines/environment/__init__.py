"""What a process finds around it: its processor and libraries, the master key, other secrets."""
