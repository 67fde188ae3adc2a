"""Vectors of documents: candidates, recoding networks, pools of public texts."""
