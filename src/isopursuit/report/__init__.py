"""Reports: self-contained HTML files about a selection or about coordinates, made for reading (extra `report`).

A page loads nothing from anywhere: its Content-Security-Policy allows inline styles, images inside the file, and the
one script whose hash it names. Pictures are drawn if matplotlib is installed.
"""

from isopursuit.report.coordinates import coordinates_report_html, write_coordinates_report
from isopursuit.report.selections import report_html, write_report

__all__ = ["coordinates_report_html", "report_html", "write_coordinates_report", "write_report"]
