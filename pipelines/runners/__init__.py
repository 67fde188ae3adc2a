"""The engines that run pipelines: one process, several, clusters behind Beam's runners, Ray."""
