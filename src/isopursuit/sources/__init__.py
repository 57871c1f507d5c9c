"""Columns wherever they live: arrays, files, devices, clusters. A pass screens them all; a few come home."""
