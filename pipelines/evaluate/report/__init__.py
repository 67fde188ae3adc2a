"""The report: one HTML page with the findings of an evaluation."""

from quietcorpus.pipelines.evaluate.report.page import render

__all__ = ["render"]
