"""Citation markers are taken out of sentences, and nothing else is."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.corpus.ingest.markers import with_single_blanks, without_markers

QUERY = f"SELECT {without_markers('text')} FROM (SELECT {with_single_blanks('$text')} AS text)"


def clean(text: str) -> str:
    ((cleaned,),) = duckdb.execute(QUERY, {"text": text}).fetchall()
    return cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Trees were studied [12].", "Trees were studied."),
        ("Trees [3, 4–6], grass [ 47,51-54 ] and moss [7a; 8]", "Trees, grass and moss"),
        ("We use BERT [DCLT19] and GloVe [PSM14, MCCD13].", "We use BERT and GloVe."),
        ("Trees grow (Smith et al., 2019; Doe, 2020a, b).", "Trees grow."),
        ("Trees grow (see, e.g., van Dyk and Lee, 2001, p. 7) fast", "Trees grow fast"),
        ("Trees grow [Smith et al., 2019] fast", "Trees grow fast"),
        ("Trees (Müller 1999a,b) and moss (O’Brien & Ångström, 2003; WHO, 2010).", "Trees and moss."),
        ("Moss was seen (de Vries et al., 2002; ICA/ILO, 2005; J. B. Li, 1999).", "Moss was seen."),
        ("Smith et al. (2019) show that trees grow.", "show that trees grow."),
        ("According to Smith and Doe (2019), trees grow.", "According to, trees grow."),
        ("as van der Berg, Lee and colleagues (1998a, 2001) say", "as say"),
        ("the study of Njoroge et al, (2013) where", "the study of where"),
        ("Trees (see [12]) and moss (see also [3] and [4]).", "Trees and moss."),
        ("Trees [1], [2], [3].", "Trees."),
        ("[12] Trees grow", "Trees grow"),
        ("[12]", ""),
        ("(Doe, 2020)", ""),
    ],
)
def test_a_marker_of_any_style_goes_with_its_names_and_its_brackets(text, cleaned):
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    "text",
    [
        "Values in [0, 1] and [0.5, 2] were taken.",
        "As in equation (3) and Table (2), trees (n = 2000) grow.",
        "In 2019, Smith grew trees (and moss) in the USA (Fig. 2).",
        "The token [CLS] and the set {1, 2} stay.",
        "It holds for x(1999) and for Smith 2019.",
        "Trees, which grow; moss: it does not. Does it?",
    ],
)
def test_what_is_no_marker_stays(text):
    assert clean(text) == text


def test_white_space_and_what_cannot_be_seen_become_single_blanks():
    assert clean(" \u3000one\ttwo\r\nthree\x00four \u2028 five\xa0") == "one two three four five"


MARKERS = ["[12]", "[3, 4–6]", "(Smith et al., 2019)", "(Doe, 2020a; Roe and Poe, 1999)", "[BCV13]", "(see Doe, 1999)"]
WORDS = st.lists(st.from_regex(r"[a-zäß]{1,8}", fullmatch=True), min_size=1, max_size=8)


@given(WORDS, st.sampled_from(MARKERS), st.data())
def test_a_marker_between_any_words_leaves_just_these(words, marker, data):
    place = data.draw(st.integers(0, len(words)))
    assert clean(" ".join([*words[:place], marker, *words[place:]])) == " ".join(words)
    assert clean(" ".join(words)) == " ".join(words)
