"""Reports: self-contained HTML files about a selection or about coordinates, made for reading (extra `report`).

A page loads nothing from anywhere: its Content-Security-Policy allows inline styles, images inside the file, and the
one script whose hash it names. Pictures are drawn if matplotlib is installed.
"""

from isopursuit.report.selections import report_html, write_report

__all__ = ["report_html", "write_report"]
