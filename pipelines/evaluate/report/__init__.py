"""The report: one HTML page that holds what an evaluation found."""

from quietcorpus.pipelines.evaluate.report.page import render

__all__ = ["render"]
