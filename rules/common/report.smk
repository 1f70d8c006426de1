"""The figures of the page, and the logs that say what jobs took."""


def figure(name, label, within=""):
    """A figure of the page, which Snakemake's own report shows as well; it may lie within a folder of its own."""
    caption = f"../workflow/report/captions/{name}.rst"
    path = f"<results>/report/figures/{within}{name}.svg"
    return report(path, caption, category="Figures", labels={"figure": label})


def mapped_embeddings(wildcards):
    """The vectors of the held-out papers in the runs that the map shows."""
    path = "<results>/encoder/{model}/seed-{seed}/embeddings/{benchmark}.parquet"
    return [path.format(model=name, seed=seed, benchmark=wildcards.benchmark) for name, seed in mapped_runs(config)]


def logs_of_rules():
    """The logs of each rule, with its wildcards in braces, as JSON."""

    def as_json(wildcards):
        return json.dumps({rule.name: str(rule.log[0]) for rule in workflow.rules if rule.log}, sort_keys=True)

    return as_json
