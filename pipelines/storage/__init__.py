"""Files on any file system, and the publication of outputs, whole or not at all."""
