"""The steps of exchange and exact search; driver.py runs them in turn."""
