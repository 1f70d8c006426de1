"""`cocite scores`, and the verdict at the end of a run: that of the report, as text."""

from collections.abc import Sequence
from pathlib import Path

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.plan.recorded import PROVENANCE
from cocite.report.labels import mean_cell
from cocite.report.verdict import Board, System, board_frame, read_verdict
from cocite.tools.answers import Answer, print_answer
from cocite.tools.commands import Form


def verdict_of(results: Path) -> tuple[Sequence[Board], list[str]]:
    """The boards of a finished run, and the verdict in lines. Raises `InputError` if the run has no scores yet."""
    if not (results / PROVENANCE).is_file():
        raise InputError(f"{results} has no scores yet; finish the run, or name other results with --results.")
    boards, generated = read_verdict(results)
    lines = [f"{board.name} ({board.measure}): {' '.join(board.words)}" for board in boards]
    return boards, [*lines, *([f"Generated data. {generated}"] if generated else [])]


def report_verdict(results: Path) -> None:
    """Report the verdict of a run that has just ended."""
    boards, lines = verdict_of(results)
    for line in [*lines, *(["All of them: cocite scores"] if boards else [])]:
        report(line)


def print_scores(results: Path, form: Form) -> None:
    """Print the boards, each with its verdict; CSV and JSON have all numbers and no words."""
    boards, lines = verdict_of(results)
    if form in ("csv", "json"):
        frame = board_frame(boards)
        print_answer(Answer("", frame.columns, frame.rows()), form)
        return
    for board, line in zip(boards, lines, strict=False):
        columns = ["system", "what it is", "score", f"difference to {board.reference}" if board.reference else ""]
        rows = [(each.name, each.about, *_cells(each, board)) for each in board.systems]
        print_answer(Answer(f"\n{line}\n", columns, rows), form)
    for line in lines[len(boards) :]:
        report(line)


def _cells(system: System, board: Board) -> tuple[str, str | None]:
    score = mean_cell(system.score, system.deviation)
    if system.tasks < board.tasks:
        score += f" ({system.tasks} of {board.tasks} tasks)"
    if system.gap is None:
        return score, None
    return score, f"{system.gap.difference:+.1f}{system.star} ({system.gap.low:+.1f} to {system.gap.high:+.1f})"
