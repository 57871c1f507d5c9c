"""Columns in any storage: arrays, files, devices, clusters. A pass screens all columns, and a few are loaded."""
