"""Refuses a target that this configuration does not have, and names the ones that it has."""

OUTPUTS = [str(output) for rule in workflow.rules for output in rule.output]

if workflow.is_main_process:
    try:
        check_targets(
            [argument for argument in sys.argv[1:] if argument and not argument.startswith("-")],
            OUTPUTS,
            config,
            results=Path(RESULTS),
            parts={dataset: len(parts) for dataset, parts in ALL_PARTS.items()},
        )
        check_spelling(targets_of(sys.argv[1:]), [rule.name for rule in workflow.rules], OUTPUTS, Path(RESULTS))
    except InputError as error:
        raise WorkflowError(error) from None
