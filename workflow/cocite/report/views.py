"""`cocite.duckdb`: a view over every table that the last run's configuration names.

A view unites all files of a table. The names in a file's path (the graph, the model, the seed) become columns in front;
buckets do not. The views name files relative to the folder of the DuckDB file, and find that folder when they are read,
so that results can be copied, moved and renamed: a copy shows its own tables.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import duckdb

from cocite.core.atomic import atomic_path
from cocite.core.options import Output, Results
from cocite.core.tables import TABLES
from cocite.core.tables.places import as_text, files_by_place, rows_of
from cocite.plan.recorded import configuration_of, configured_in

FORMAT = "v1.0.0"
"""The oldest DuckDB format, which every later version reads: a reader's DuckDB may be older than the pipeline's."""
SCHEMA = "cocite_folder"
VARIABLE = "results"
"""The variable that a session sets to the folder of the results if it attaches the file instead of opening it."""
# A table function takes no subquery, so the path of the attached file is out of reach. DuckDB spills to a folder beside
# the file that a session opens; the setting that names it is the only constant with the place of that file.
_HELPERS = f"""
CREATE SCHEMA {SCHEMA};
CREATE MACRO {SCHEMA}.path() AS CASE
    WHEN getvariable('{VARIABLE}') IS NOT NULL THEN getvariable('{VARIABLE}')
    WHEN current_setting('temp_directory') NOT LIKE '%_.tmp'
    THEN error('The folder of these views is unknown: open the file as the main database, '
        || 'without a custom temp_directory, or SET VARIABLE {VARIABLE} = the path of its folder.')
    WHEN parse_dirpath(current_setting('temp_directory')) = '' THEN '.'
    ELSE parse_dirpath(current_setting('temp_directory'))
END;
CREATE MACRO {SCHEMA}.files(names) AS list_transform(
    names, lambda name: regexp_replace({SCHEMA}.path() || '/' || name, '([*?[])', '[\\1]', 'g')
);
CREATE MACRO {SCHEMA}.is_own() AS (
    SELECT CASE
        WHEN count(*) > 1
        THEN error('Two folders of results are attached, and the views of one would show the files of the other: '
            || 'open each separately.')
        WHEN getvariable('{VARIABLE}') IS NULL AND bool_or(NOT contains(
            concat(path, '.tmp'), regexp_replace(current_setting('temp_directory'), '^.*\\.\\.?/', '')
        ))
        THEN error('These views are attached to another database, and would show the files in its folder: '
            || 'SET VARIABLE {VARIABLE} = the path of their own folder.')
        ELSE true
    END
    FROM duckdb_schemas() JOIN duckdb_databases() USING (database_name) WHERE schema_name = '{SCHEMA}'
);
"""


def write_views(results: Results, output: Output) -> None:
    """Write a DuckDB file with a view over every table that has files of entries of the last run's configuration."""

    def beside(paths: Iterable[Path]) -> str:
        names = (os.path.relpath(path, output.parent) for path in paths)
        return f"{SCHEMA}.files([{', '.join(map(as_text, names))}])"

    configured = configured_in(configuration_of(results))
    with (
        atomic_path(output) as temporary,
        duckdb.connect(temporary, config={"storage_compatibility_version": FORMAT}) as database,
    ):
        database.execute(_HELPERS)
        for table in TABLES.values():
            if files := files_by_place(results, table, configured):
                rows = f"FROM ({rows_of(table, files, beside)}) WHERE {SCHEMA}.is_own()"
                database.execute(f"CREATE VIEW {table.name} AS {rows}")
                database.execute(f"COMMENT ON VIEW {table.name} IS {as_text(table.description)}")
