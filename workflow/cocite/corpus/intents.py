"""The intents of a citation as SQL: lists in the tables, sets of bits where copies of a citation are united."""

INTENTS = ("background", "methodology", "result")
"""The intents that Semantic Scholar's classifier knows (Cohan et al., 2019), sorted."""


def mask_of_text(text: str) -> str:
    """Expression: the set of intents that stand in a JSON text, however deep its lists are nested."""
    return _mask(f"contains({text}, '\"{{}}\"')")


def mask_of_list(names: str) -> str:
    """Expression: the set of intents in a list of their names."""
    return _mask(f"list_contains({names}, '{{}}')")


def list_of_mask(mask: str) -> str:
    """Expression: the sorted list of the intents in a set."""
    chosen = ", ".join(f"CASE WHEN {mask} & {1 << bit} > 0 THEN '{name}' END" for bit, name in enumerate(INTENTS))
    return f"list_filter([{chosen}], lambda name: name IS NOT NULL)"


def _mask(test: str) -> str:
    bits = (f"CASE WHEN {test.format(name)} THEN {1 << bit} ELSE 0 END" for bit, name in enumerate(INTENTS))
    return f"({' + '.join(bits)})::UTINYINT"
