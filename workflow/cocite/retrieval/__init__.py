"""The stage retrieval: indexes that read the text and know the citations."""
