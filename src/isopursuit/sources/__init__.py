"""Columns wherever they are stored: arrays, files, devices, clusters. A pass screens all; a few are loaded."""
