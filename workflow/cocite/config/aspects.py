"""Why papers cite each other: the intents of citations, and the aspects that follow from them."""

from typing import Literal, get_args

Intent = Literal["background", "methodology", "result"]
INTENTS: tuple[str, ...] = get_args(Intent)
"""The intents that Semantic Scholar's classifier knows (Cohan et al., 2019), sorted; bit n is the n-th of them."""
MISCELLANEOUS = "miscellaneous"
"""The aspect of a link without an intent."""
ASPECTS = (*INTENTS, MISCELLANEOUS)
"""All aspects; a link has that of each of its intents."""
SEVERAL, WITHOUT = "several", "none"
INTENT_CLASSES = (*INTENTS, SEVERAL, WITHOUT)
"""The classes of citations: those with one intent, by intent; those with several; those without."""
CONCATENATED = "concatenated"
"""The space that concatenates the dimensions of all aspects."""
SPACES = "aspects"
"""The folder of the spaces, within the folder of an encoder."""
