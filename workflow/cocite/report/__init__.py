"""The report: tables and figures that answer the run's questions, the page, and the DuckDB file over all tables."""
