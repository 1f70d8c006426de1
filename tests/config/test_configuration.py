"""A configuration that cannot be run is refused at once, in one sentence that names the key."""

from datetime import date
from pathlib import Path

import pytest
from tests.configurations import refusals, refused

from cocite.config.configuration import resolve, resolve_or_explain
from cocite.config.entries import MEANINGS

ROOT = Path(__file__).parents[2]


def test_a_release_without_quotes_is_the_date_that_yaml_takes_it_for(written):
    written["release"] = date(2026, 1, 6)
    assert resolve(written)["release"] == "2026-01-06"


def test_a_benchmark_on_the_hub_is_pinned_without_being_told(written):
    written["benchmarks"] = {"sre": {"kind": "scirepeval", "hub": {}}}
    hub = resolve(written)["benchmarks"]["sre"]["hub"]
    assert [hub[half]["dataset"] for half in ("texts", "labels")] == ["allenai/scirepeval", "allenai/scirepeval_test"]
    assert all(len(hub[half]["revision"]) == 40 for half in hub)


def test_the_default_configuration_is_complete_with_defaults(written):
    config = resolve(written)
    assert config["models"]["cocite"]["epochs"] == 1
    assert config["embeddings"]["citation-dot"]["neighbours"]["metric"] == "cosine"
    assert written["models"]["cocite"].get("epochs") is None


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        *refusals("""
        modles: {} | key modles is not known; did you mean models?
        models.cocite.los: triplet | key models.cocite.los is not known; did you mean loss?
        models.cocite.lr: 2e-5 | key models.cocite.lr must be of type number, not '2e-5' (YAML reads
        models.cocite.loss: tripel | key models.cocite.loss is 'tripel'; it must be one of angle, cosent, distillation,
            infonce
        models.cocite.encoder: big | key models.cocite.encoder names 'big', which encoders does not declare
        models.cocite.triplets: none | (declared: cocite, scincl, specter, aspects)
        models.bm25: {triplets: cocite, encoder: small} | key models.bm25: that name is a baseline's
        models.Cocite: {} | key models.Cocite: a name must be of small letters
        triplets.cocite.k_positive: 300 | k_positive (300) must be below k_negative (300)
        triplets.cocite.k_positive: 3 | k_positive (3) must be at least per_query (5)
        triplets.cocite.k_negative: 12 | k_negative (12) must be at least k_positive + hard negatives (10 + 5)
        triplets.cocite.k_negative: 401 | must not exceed embeddings.cocitation-dot.neighbours.k (400)
        triplets.cocite.easy: 6 | key triplets.cocite.easy must not exceed per_query (5)
        triplets.cocite.graph: citation | key triplets.cocite.graph does not go with sampler: neighbours
        triplets.cocite.sampler: neighbors | key triplets.cocite.sampler is 'neighbors'
        triplets.specter.graph: cocitation | 'cocitation' is not a directed citation graph
        embeddings.cocitation-dot.neighbours: {k: 400, index: {kind: ivf, nlist: 8, nprobe: 9}} |
            embeddings.cocitation-dot.neighbours.index.nprobe (9) must not exceed nlist (8)
        embeddings.cocitation-dot.neighbours: {k: 400, papers_of: cocite} | cocite is sampled from these neighbours
        embeddings.cocitation-dot.neighbours: {k: 400, papers_of: missing} | papers_of names 'missing'
        embeddings.cocitation-dot.neighbours: {k: 400, papers_of: specter, among: texts} | papers_of takes the place of
            among: texts
        embeddings.cocitation-dot.neighbours.k: 3000 | neighbours.k (3000) must be smaller than 2999
        benchmarks.scirepeval.tasks: [fos, chess] | names 'chess', which is no task of the kind scirepeval (they
        benchmarks.scirepeval.hub: {} | needs exactly one of folder and hub
        benchmarks.scirepeval.hub: {labels: {revision: main}} | benchmarks.scirepeval.hub.labels.revision is 'main'; it
            must be a commit of 40 hexadecimal digits
        benchmarks.more: {kind: scirepeval} | key benchmarks.more needs exactly one of folder and hub
        benchmarks.more: {kind: mdcr} | key benchmarks.more.folder is missing
        benchmarks.more: {kind: beir, folder: none} | benchmarks.more.folder: the folder none does not exist
        benchmarks.holdout.tasks: [cite] | key benchmarks.holdout.tasks does not go with kind: holdout
        embeddings.cocitation-dot.holdout: 0.5 | embeddings.cocitation-dot.holdout is 0.5; it must be less than 0.5
        embeddings.cocitation-dot.holdout_of: mirrors | 'mirrors'; it must be one of pairs, edges
        embeddings.cocitation-dot.import: csv | 'csv'; it must be one of arrow, tsv
        embeddings.cocitation-dot.batch_size: 999 | batch_size (999) must be a multiple of batch_negatives (50)
        embeddings.cocitation-dot.weight_unit: 0 | embeddings.cocitation-dot.weight_unit is 0; it must be more than 0
        graphs.citation.pairs: all | key graphs.citation.pairs does not go with signal: citation
        graphs.cocitation.strength: cosin | key graphs.cocitation.strength is 'cosin'; it must be one of count, cos
        graphs.cocitation.max_citations: 9 | graphs.cocitation.max_citations does not go with signal: cocitation
        graphs.cocitation: {signal: coupling, max_references: 9} | max_references does not go with signal: coupling
        graphs.sum: {signal: combination} | key graphs.sum.of is missing
        graphs.sum: {signal: combination, of: {links: 1}} | key graphs.sum.of names 'links', which graphs do
        graphs.sum: {signal: combination, of: {citation: 1}} | graphs.sum.of names 'citation', which is dir
        graphs.sum: {signal: combination, of: {cocitation: 0}} | key graphs.sum.of.cocitation is 0; it
        graphs.sum: {signal: combination, of: {cocitation: 1.0e+308}} | graphs.sum.of.cocitation is 1e+308; it must be
            at most 1000000000.0
        graphs.sum: {signal: combination, of: {sum: 1}} | graphs.sum.of: a combination must not be a part of
        encoders.small: {model: some/model} | key encoders.small.revision is missing
        encoders.small.model: some/model | key encoders.small needs exactly one of model, package and build
        encoders.small.build.heads: 3 | key encoders.small.build.hidden must be a multiple of heads
        corpus.source: directory | key corpus.path is missing
        corpus.source: demos | key corpus.source is 'demos'; it must be one of demo, directory, openalex, s2
        queries.holdout: 0 | key benchmarks.holdout needs held-out papers
        queries.from: file | key queries.path is missing
        queries.from: triplets | key queries.revision is missing; what comes from the Hugging Face hub is pinned
        queries: {min_year: 2001, max_year: 2000} | key queries.min_year (2001) must not be after max_year (2000)
        queries: null | key queries must be of type object, not None (nothing stands behind the key: leave it out
        queries.fields: Art | key queries.fields must be of type array
        exclude: [none.txt] | key exclude[0]: none.txt is neither a file nor a benchmark (declared: holdout, aspects,
            scire
        exclude: [scirepeval, holdout] | key exclude[1]: the papers of the benchmark holdout are held out already
        exclude: [mine.parquet] | key exclude[0]: mine.parquet is a table; the papers to exclude stand in a text f
        exclude: [$COCITE_NOWHERE] | key exclude[0] is '$COCITE_NOWHERE', but that variable is not set
        release: newest | key release is newest, which is no date of the calendar; releases of the source demo have
        release: '20260106' | key release is 20260106, which is no date of the calendar
        release: 2026 | key release must be of type string, not 2026 (write it in quotes)
        corpus.buckets: 2.0 | key corpus.buckets must be of type integer, not 2.0
        pathvars: {results: ~/mine} | key pathvars.results is '~/mine'; it is taken as it stands
        pathvars: {results: $HOME/mine} | key pathvars.results is '$HOME/mine'
        pathvars: {logs: logs/} | key pathvars.logs is 'logs/'
        pathvars: {results: ./results/mine} | has no ./ in front and no slash too many
        pathvars: {results: results//mine} | key pathvars.results is 'results//mine'
        pathvars: {results: 'out{1}'} | key pathvars.results is 'out{1}'; a path must not have the character '{'
        pathvars: {results: 'r[1]'} | is 'r[1]'; with '[', DuckDB and Polars take a path for a pattern, so rename it
        pathvars: {results: runs/r*} | with '*', DuckDB and Polars take a path for a pattern
        pathvars: {results: -r} | is '-r'; commands take what begins with a hyphen for an option, so rename it
        pathvars: {benchmarks: .} | is '.'; results need a folder to themselves
        pathvars: {benchmarks: /dev/null/b} | no folder can be made at /dev/null/b (/dev/null is a file)
        corpus: {source: directory, path: <mine>} | key corpus.path is '<mine>'; a path must not have the character '<'
        corpus: {source: directory, path: ~no-such-user/x} | key corpus.path is '~no-such-user/x', but there is no such
            home
        corpus: {source: s2, api: 'ftp://host'} | key corpus.api is 'ftp://host'; it must be a URL that starts with
            http:// or
        queries: {from: triplets, revision: main, count: 5} | queries.revision is 'main'; it must be a commit of 40
            hexadecimal digits
        queries: {from: triplets, revision: '0000000000000000000000000000000000000000'} | key queries.count is missing
        encoders.small.package: a-b | encoders.small.package is 'a-b'; it must be the name of a Python package
        triplets.specter.group: All | key triplets.specter.group is 'All'; it must be of small letters, digits
        graphs.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:
            {signal: citation} | and have at most 100 of them
        queries.count: 1000000000000000000000000000000 | key queries.count is 1000000000000000000000000000000; a whole
            number must be below 2⁶³
        models.cocite.seeds: ['1'] | key models.cocite.seeds[0] must be of type integer, not '1'
        models.cocite.seeds: [08, x] | seeds[0] must be of type integer, not '08'
        models.cocite.seeds: [] | key models.cocite.seeds is [], which should be non-empty
        release: latest | key release is latest, which only the sources s2 and openalex can tell
        release: '2026-02-30' | key release is 2026-02-30, which is no date
        triplets.omissions: {sampler: citations, graph: citation} | the folder of that name is taken
        embeddings.citation-dot: {graph: citation, batch_negatives: 0, uniform_negatives: 0} | key
            embeddings.citation-dot: batch_negatives and uniform_negatives are both 0
        benchmarks.scirepeval.folder: /not/there | the folder /not/there does not exist
        benchmarks.mine: {kind: beir, metrics: [ndcg@10]} | metrics[0] is 'ndcg@10'; it must be a metric as
        """),
        ("pathvars", {"results": "a\0b"}, "a text must not have '\\x00'"),
        ("pathvars", {"logs": "a\\b"}, "key pathvars.logs is 'a\\\\b'; with '\\\\', DuckDB and Polars take"),
        ("pathvars", {"results": "é" * 128}, "a name has at most 255 bytes"),
        ("pathvars", {"results": "a/" * 600 + "b"}, "this path at most 1000 characters"),
        ("release", "x" * 10_001, "key release has 10,001 characters; 10,000 are the most"),
        ("release", "\ud800", r"key release is '\ud800'; a text must not have '\ud800'"),
        ("graphs.a\n", {"signal": "citation"}, "a name must be of small letters"),
        ("models.cocite.lr", float("nan"), "key models.cocite.lr is nan; it must be a number that is finite"),
        ("models.cocite.lr", float("inf"), "key models.cocite.lr is inf; it must be a number that is finite"),
        ("models.cocite.seeds", [*range(1, 99), 1], "…, which has non-unique elements"),
    ],
)
def test_the_sentence_names_the_key(written, path, value, sentence):
    message = refused(written, path, value)
    assert message.startswith("Configuration key ")
    assert sentence in message
    assert "\n" not in message


def test_all_that_is_wrong_is_told_at_once(written):
    written["models"]["cocite"] |= {"los": "triplet", "epochs": 0}
    _, faults = resolve_or_explain(written | {"seed": -1})
    assert len(faults) == 3
    assert [any(key in fault for fault in faults) for key in ("cocite.los ", "cocite.epochs ", "seed ")] == [True] * 3


def test_what_does_not_fit_together_is_told_for_each_section(written):
    written["models"]["cocite"]["encoder"] = "big"
    written["queries"] = {"from": "file", "path": "none.txt", "holdout": 200}
    _, faults = resolve_or_explain(written | {"release": "mine"})
    assert len(faults) == 3
    for key in ("release is mine", "queries.path: the file none.txt", "models.cocite.encoder names 'big'"):
        assert any(f"Configuration key {key}" in fault for fault in faults)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("encoders.small.package", " ~"),
        ("triplets.specter.group", " ~"),
        ("corpus", {"source": "s2", "api": " ~"}),
        ("queries", {"from": "triplets", "revision": " ~", "count": 5}),
        ("graphs. ~", {"signal": "citation"}),
    ],
)
def test_no_message_shows_a_regular_expression(written, path, value):
    message = refused(written, path, value)
    assert not any(pattern in message for pattern in MEANINGS)
    assert not set("^$[]*+\\") & set(message)
    assert "must be " in message


def test_combinations_may_be_parts_of_others_but_not_of_themselves(written):
    parts = {"first": {"cocitation": 1.0}, "second": {"first": 0.5, "cocitation": 2.0}}
    written["graphs"] |= {name: {"signal": "combination", "of": of} for name, of in parts.items()}
    assert resolve(written)["graphs"]["second"]["normalise"] == "none"
    assert "graphs.first.of: a combination must not be a part of itself" in refused(
        written, "graphs.first.of", {"second": 1.0}
    )


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    refusals(
        """
        embeddings.cocitation-dot.neighbours.index: {kind: flat, nlist: 8} | nlist does not go with kind: flat
        embeddings.cocitation-dot.neighbours.index: {kind: hnsw, nprobe: 8} | nprobe does not go with kind: hn
        models.cocite.trainable: {kind: all, rank: 8} | trainable.rank does not go with kind: all
        models.cocite.lora_rank: 8 | lora_rank is not known
        models.cocite.loss: {kind: cosent, margin: 1.0} | loss.margin does not go with kind: cosent
        models.cocite.margin: 1.0 | margin is not known; it stands within loss, as in loss: {kind: triplet, margin: …}
        embeddings.citation-dot.loss: {kind: softmax, margin: 1.0} | margin does not go with kind: softmax
        corpus.api: https://host | corpus.api does not go with source: demo
        corpus.shards: {} | corpus.shards does not go with source: demo
        triplets.cocite.easy_negatives: {kind: random, clusters: 9} | clusters does not go with kind: random
        triplets.cocite.easy_negatives: {kind: k-means, drawn: 9} | drawn does not go with kind: k-means
        encoders.small.revision: '0000000000000000000000000000000000000000' | encoders.small.revision does not go with
            build
        queries.path: ids.txt | queries.path does not go with from: rule
        queries.revision: '0000000000000000000000000000000000000000' | queries.revision does not go with from: rule
        """
    ),
)
def test_a_key_that_would_have_no_effect_is_refused(written, path, value, sentence):
    assert sentence in refused(written, path, value)


def test_a_name_stands_for_an_entry_that_holds_nothing_else(written):
    written["models"]["cocite"]["trainable"] = "lora"
    config = resolve(written)
    assert config["models"]["cocite"]["trainable"] == {"kind": "lora", "rank": 8, "alpha": 16}
    assert resolve(written | {"models": config["models"]}) == config


def test_a_variable_that_is_not_set_is_named(written, monkeypatch):
    monkeypatch.delenv("COCITE_NOWHERE", raising=False)
    corpus = {"source": "directory", "path": "$COCITE_NOWHERE/release"}
    assert "corpus.path is '$COCITE_NOWHERE/release', but that variable is not set" in refused(
        written, "corpus", corpus
    )
