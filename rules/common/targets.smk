"""Files that are asked for by name are of this configuration, or the run says which ones there are."""

try:
    check_targets(
        [argument for argument in sys.argv[1:] if not argument.startswith("-")],
        [str(output) for rule in workflow.rules for output in rule.output],
        config,
        results=Path(RESULTS),
        parts={dataset: len(parts) for dataset, parts in PARTS.items()},
    )
except InputError as error:
    raise WorkflowError(error) from None
