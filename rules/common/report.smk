"""The figures of the page, and the logs that say what jobs took."""


def figures():
    """The figures of the page, in no order."""
    return [
        "<results>/report/figures/pair_counts.svg",
        "<results>/report/figures/validation_curves.svg",
        "<results>/report/figures/link_prediction.svg",
        "<results>/report/figures/band_quality.svg",
        "<results>/report/figures/triplets.svg",
        *expand("<results>/report/figures/{benchmark}/map.svg", benchmark=HOLDOUTS[:1]),
    ]


def mapped_embeddings(wildcards):
    """The vectors of the held-out papers in the runs that the map shows."""
    path = "<results>/encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet"
    return [path.format(model=name, seed=seed, benchmark=wildcards.benchmark) for name, seed in mapped_runs(config)]


def logs_of_rules():
    """The logs of each rule, with its wildcards in braces, as JSON."""

    def as_json(wildcards):
        return json.dumps({rule.name: str(rule.log[0]) for rule in workflow.rules if rule.log}, sort_keys=True)

    return as_json
