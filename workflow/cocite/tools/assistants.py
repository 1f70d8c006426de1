"""A finished run as tools of assistants: the Model Context Protocol (MCP) over standard input and output. The tools are
functions that answer over HTTP, with the same parameters and answers."""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import version
from inspect import Parameter, signature
from typing import Any, get_args

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from cocite.core.errors import InputError
from cocite.tools import run_answers
from cocite.tools.finished_run import Run

INSTRUCTIONS = (
    "Search a corpus of {papers:,} scientific papers. Ids of papers are corpus ids; look_up finds the id of a DOI or "
    "title. The indexes and models are {models}; the first one answers by default."
)
Tool = tuple[Callable[..., Any], str | None, Collection[str]]
TOOLS: Mapping[str, Tool] = {
    "search": (run_answers.nearest, "text", ("paper", "unlike")),
    "similar": (run_answers.nearest, "paper", ("text",)),
    "look_up": (run_answers.suggested, None, ()),
    "paper": (run_answers.record, None, ()),
    "cited_by": (run_answers.citing, None, ()),
    "cites": (run_answers.cited, None, ()),
}
"""Name → the function, a parameter that only the function can do without, and parameters that the tool lacks."""


def assistant_server(run: Run) -> MCPServer:
    """A server whose tools answer from a run."""
    models = ", ".join(each["name"] for each in run_answers.described(run)["models"])
    instructions = INSTRUCTIONS.format(papers=run.titles.size, models=models)
    server = MCPServer("cocite", version=version("cocite"), instructions=instructions, log_level="ERROR")
    hints = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    for name, tool in TOOLS.items():
        function, about = _of_run(run, tool), run_answers.explained(tool[0])
        server.add_tool(function, name, description=about, annotations=hints, structured_output=True)
    return server


def _of_run(run: Run, tool: Tool) -> Callable[..., Any]:
    """The function of a tool, with the parameters of a request."""
    function, needed, lacks = tool

    def answer(**values: Any) -> Any:
        try:
            return function(run, **values)
        except InputError as error:
            raise ToolError(str(error)) from None

    own, kept = signature(function), list[Parameter]()
    for name, parameter in [*own.parameters.items()][1:]:
        if name == needed:
            kept.append(parameter.replace(default=Parameter.empty, annotation=get_args(parameter.annotation)[0]))
        elif name not in lacks:
            kept.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    answer.__signature__ = own.replace(parameters=kept)  # type: ignore[attr-defined]
    return answer
