"""From a search to an answer: select, prices, audit, many points."""
