"""The page of questions: its queries are found on it, and their output is put below them."""

import duckdb
from tests.cookbook import recipes

from cocite.tools.documentation import cookbook_page

PAGE = """# Page

```sql
SELECT 'no recipe: it has no question';
```

## 1. What is one?

A sentence.

```sql
SELECT 1 AS number, 'a|b' AS letters;
```

## 2. What is two?

```sql
SELECT 2.5 AS number,
    [1, 2] AS list;
```

| of | old |
| --- | --- |
| 7 | 8 |

The end.
"""

WRITTEN = PAGE.replace(
    "AS letters;\n```\n", "AS letters;\n```\n\n| number | letters |\n| --- | --- |\n| 1 | a\\|b |\n"
).replace("| of | old |\n| --- | --- |\n| 7 | 8 |\n", "| number | list |\n| --- | --- |\n| 2.5 | 1, 2 |\n")


def test_a_recipe_is_a_question_with_its_query_and_the_columns_of_its_output():
    first, second = recipes(PAGE)
    assert (first.question, first.columns) == ("1. What is one?", [])
    assert first.query == "SELECT 1 AS number, 'a|b' AS letters;\n"
    assert (second.question, second.columns) == ("2. What is two?", ["of", "old"])
    assert second.query.endswith("    [1, 2] AS list;\n")


def test_output_is_put_below_its_query_in_place_of_what_was_there():
    with duckdb.connect() as database:
        assert cookbook_page(PAGE, database) == cookbook_page(WRITTEN, database) == WRITTEN
