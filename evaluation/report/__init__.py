"""The report: one HTML page with the findings of an evaluation."""

from quietcorpus.evaluation.report.page import render

__all__ = ["render"]
