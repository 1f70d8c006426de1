"""Where the corpus comes from, and whether the disk holds it."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from cocite.ground.errors import InputError
from cocite.ground.words import byte_size
from cocite.people.doctor.finding import Finding

PATIENCE = 20
"""Seconds that the API is waited for."""


def examine_source(config: Mapping[str, Any]) -> Iterator[Finding]:
    """The findings on the key, and on the disk where the release can be listed."""
    accepted = key(config)
    yield accepted
    if accepted.verdict == "ok":
        yield disk(config)


def key(config: Mapping[str, Any]) -> Finding:
    """Whether the API, where the corpus comes from one, takes the key."""
    import requests

    from cocite.corpus.release.client import KEY_HEADER, KEY_VARIABLE, has_key

    corpus = config["corpus"]
    if corpus["source"] != "s2":
        return Finding("ok", f"no key needed for the source {corpus['source']}")
    if not has_key():
        to_do = f"run `export {KEY_VARIABLE}=…`; https://www.semanticscholar.org/product/api gives one"
        return Finding("failed", f"{KEY_VARIABLE} is not set", to_do)
    url = f"{corpus['api'].rstrip('/')}/release/{config['release']}/dataset/papers"
    headers = {KEY_HEADER: os.environ[KEY_VARIABLE].strip()}
    try:
        status = requests.get(url, headers=headers, timeout=PATIENCE, allow_redirects=False).status_code
    except (requests.RequestException, ValueError) as error:
        return Finding("failed", f"{corpus['api']} cannot be reached ({type(error).__name__})", "check the network")
    answers = {
        200: Finding("ok", f"{corpus['api']} takes the key"),
        401: Finding("failed", f"{corpus['api']} refuses the key", f"copy {KEY_VARIABLE} again"),
        403: Finding("failed", f"{corpus['api']} refuses the key", f"copy {KEY_VARIABLE} again, or ask for a new one"),
        404: Finding(
            "failed", f"{corpus['api']} has no release {config['release']}", "check `release` and `corpus.api`"
        ),
    }
    return answers.get(status, Finding("warning", f"{corpus['api']} answers with status {status}", "try again later"))


def disk(config: Mapping[str, Any]) -> Finding:
    """Whether the disk of the results holds the corpus, as `cocite corpus plan` estimates it."""
    from cocite.corpus.release.plan import plan_corpus

    try:
        plan = plan_corpus(config)
    except InputError as error:
        return Finding("failed", "the corpus cannot be planned", str(error))
    need = max(plan.at_peak - plan.there, 0)
    what = f"disk: {byte_size(plan.free)} free, about {byte_size(need)} needed for the corpus"
    return (
        Finding("ok", what) if plan.free >= need else Finding("failed", what, "point pathvars.results to another disk")
    )
