"""Looking inside finished results: `cocite show`, `cocite search`, and the page of questions, docs/cookbook.md.

It makes nothing that a rule knows. What it reads are the views of `cocite.duckdb`, and the folders of trained models,
which sentence-transformers opens by itself.
"""
