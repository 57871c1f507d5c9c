"""What a search does at each of many points."""
