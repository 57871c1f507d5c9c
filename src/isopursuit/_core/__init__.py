"""What every part of the package uses: options, clock, threads, linear algebra, text, HTML, progress, output files."""
