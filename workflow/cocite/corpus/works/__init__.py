"""Works of OpenAlex, as JSON Lines or Parquet, become the rows of papers, abstracts and citations."""

import cocite.corpus.ingest  # noqa: F401 (before NumPy)
