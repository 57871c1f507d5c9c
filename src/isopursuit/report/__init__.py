"""Reports: self-contained HTML pages about a selection or about coordinates (extra `report`).

A page loads nothing from elsewhere: its Content-Security-Policy allows inline styles, embedded images, and one script,
given by its hash. Pictures are drawn if matplotlib is installed.
"""

from isopursuit.report.coordinates import coordinates_report_html, write_coordinates_report
from isopursuit.report.selections import report_html, write_report

__all__ = ["coordinates_report_html", "report_html", "write_coordinates_report", "write_report"]
