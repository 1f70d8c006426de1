r"""What a sentence that cites is without its citation markers: SQL for DuckDB, whose regular expressions are RE2's.

A marker goes as a whole, names included, so that no style of citing is left in a sentence:

- numbers in square brackets: `[12]`, `[3, 4–6]`, and keys such as `[BCV13]`;
- authors and years in brackets: `(Smith et al., 2019; Doe, 2020a, b)`, `(see, e.g., van Dyk and Lee, 2001, p. 7)`;
- authors before a year in brackets: `Smith et al. (2019)`, `Smith and Doe (2019)`.

Brackets that are empty then go as well, and the white space and the commas around them. What only looks like a marker
goes with them: an interval such as `[1, 2]`, or `(March 2012)`. Numbers in round brackets, `(3)`, are as often numbers
of equations or of items of a list, and stay.
"""

_UNSEEN = r"\v\x00-\x1f\x7f\x85"
_OTHER_BLANKS = r"\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_WHITE_SPACE = rf"[ {_UNSEEN}{_OTHER_BLANKS}]{{2,}}|[{_UNSEEN}{_OTHER_BLANKS}]"
"""All but single blanks, which stay as they are: to replace each of them as well would take five times as long."""
APOSTROPHE = "'"
_PARTICLES = r"(?:(?:[Vv]an|[Vv]on|[Dd]e|der|den|del|della|[Dd]i|da|du|[Ll]a|[Ll]e|el|al|bin|ter|ten|dos|das) )*"
_YEAR = r"(?:1[6-9]|20)\d\d[a-z]?"
_YEARS = rf"{_YEAR}(?: ?[,;/–-] ?(?:{_YEAR}|[a-z]\b))*"
_PAGES = r"(?: ?[,:] ?(?:pp?\.? ?)?\d[\d–-]*)?"
_WORDS_BEFORE = (
    r"(?:(?:see|[Ee]\. ?g\.|[Ii]\. ?e\.|eg|ie|cf\.?|also|for example|for instance|reviewed (?:in|by)|as in|and|but|in"
    r"|refs?\.?),? ?)*"
)
_NAME = rf"{_PARTICLES}\p{{Lu}}[\p{{L}}\p{{M}}'’-]+"
_OTHERS = r",? (?:et ?al\.?|and (?:others|colleagues|co-?workers))"
_AUTHORS = rf"{_NAME}(?:(?:, {_NAME})*(?:{_OTHERS}|,? (?:and|&) {_NAME}(?:{_OTHERS})?))?"
_LISTED_NAME = rf"{_PARTICLES}\p{{Lu}}[\p{{L}}\p{{M}}\d'’./&-]*"
_LISTED_AUTHORS = rf"{_LISTED_NAME}(?:(?:,? (?:and|&) |, | ){_LISTED_NAME})*(?:{_OTHERS})?"
_LISTED = rf"{_LISTED_AUTHORS},? ?\(?{_YEARS}\)?{_PAGES}"
_NUMBER = r"[1-9]\d{0,3}[a-z]?"
_KEY = r"\p{Lu}[\p{L}+]{0,9}\d\d[a-z]?"

_REPLACED = (
    (rf"\[ ?{_WORDS_BEFORE}{_NUMBER}(?: ?[,;–—−-] ?{_NUMBER})* ?\]", " "),
    (rf"\[ ?{_KEY}(?: ?[,;] ?{_KEY})* ?\]", " "),
    (rf"[(\[] ?{_WORDS_BEFORE}{_LISTED}(?: ?[;,] ?{_WORDS_BEFORE}{_LISTED})* ?[)\]]", " "),
    (rf"(^|[^\p{{L}}]){_AUTHORS},? ?[(\[] ?{_YEARS}{_PAGES} ?[)\]]", r"\1 "),
    (r"  +", " "),
    (rf"[(\[][ ,;.]*{_WORDS_BEFORE}[ ,;.]*[)\]]", " "),
    (r"  +", " "),
    (r" ([,.;:!?)\]])", r"\1"),
    (r"([(\[]) ", r"\1"),
    (r"([,;])[,; ]*([,;.])", r"\2"),
    (r"^[ ,;:.)\]]+|[ ,;:(\[]+$", ""),
)
"""Regular expressions and what stands for what they find, in this order; white space is single blanks by then."""


def with_single_blanks(text: str) -> str:
    """SQL expression: a text whose white space, and what else cannot be seen, is single blanks."""
    return f"trim(regexp_replace({text}, '{_WHITE_SPACE}', ' ', 'g'))"


def without_markers(text: str) -> str:
    """SQL expression: a text with single blanks as it is without citation markers."""
    cleaned = text
    for pattern, instead in _REPLACED:
        cleaned = f"regexp_replace({cleaned}, '{pattern.replace(APOSTROPHE, 2 * APOSTROPHE)}', '{instead}', 'g')"
    # A sentence without a bracket holds no marker.
    return f"CASE WHEN contains({text}, '[') OR contains({text}, '(') THEN {cleaned} ELSE {text} END"
