"""The report: one HTML page with the findings of an evaluation."""

from .page import render

__all__ = ["render"]
