"""`cocite scores`, and the verdict at the end of a run: that of the report, as text."""

from pathlib import Path

from cocite.core.errors import InputError
from cocite.core.progress import report
from cocite.plan.recorded import PROVENANCE
from cocite.report.labels import mean_cell
from cocite.report.verdict import Board, System, board_frame, read_verdict
from cocite.tools.answers import Answer, print_answer
from cocite.tools.commands import Form


def _verdict(results: Path) -> tuple[list[Board], list[str]]:
    """The boards of a finished run, and a line on generated data, if there are any."""
    if not (results / PROVENANCE).is_file():
        raise InputError(f"{results} has no scores yet; finish the run, or name other results with --results.")
    boards, generated = read_verdict(results)
    return boards, [f"Generated data. {generated}"] if generated else []


def _lines(board: Board) -> list[str]:
    return [f"{board.name} ({board.measure})", *(f"  {words}" for words in board.words)]


def verdict_in_lines(results: Path) -> list[str]:
    """The whole verdict of a finished run. Raises `InputError` if it has no scores yet."""
    boards, generated = _verdict(results)
    return [line for board in boards for line in _lines(board)] + generated


def report_verdict(results: Path) -> None:
    """Report the verdict of a run that has just ended."""
    if lines := verdict_in_lines(results):
        report("\n".join([*lines, f"All scores: cocite scores --results {results}"]))


def print_scores(results: Path, form: Form) -> None:
    """Print the boards, each with its verdict; CSV and JSON have all numbers and no words."""
    boards, generated = _verdict(results)
    if form in ("csv", "json"):
        frame = board_frame(boards)
        print_answer(Answer("", frame.columns, frame.rows()), form)
        return
    for board in boards:
        columns = ["system", "what it is", "score", f"difference to {board.reference}" if board.reference else ""]
        rows = [_row(each, board) for each in board.systems]
        print_answer(Answer("\n".join(["", *_lines(board), ""]), columns, rows), form)
    for line in generated:
        report(line)


def _row(system: System, board: Board) -> tuple[str | None, ...]:
    gap = system.gap
    partial = f" ({system.tasks} of {board.tasks} tasks)" if system.tasks < board.tasks else ""
    difference = f"{gap.difference:+.1f}{system.star} ({gap.low:+.1f} to {gap.high:+.1f})" if gap else None
    return system.name, system.about, mean_cell(system.score, system.deviation) + partial, difference
