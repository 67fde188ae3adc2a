"""The report: one HTML page that holds what an evaluation found."""

from pipelines.evidence.report.page import render

__all__ = ["render"]
