"""DOIs as they are compared."""


def sql_of_doi(expression: str) -> str:
    """SQL expression: a DOI in lowercase without the address that resolves it; null if nothing is left."""
    return rf"nullif(regexp_replace(lower(trim({expression})), '^(https?://(dx\.)?doi\.org/|doi:\s*)', ''), '')"
