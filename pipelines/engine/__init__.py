"""Where pipelines run: in this process, in several, on clusters behind Beam's runners, on Ray."""
