"""Tables that people have, read straight into the ingested tables."""
