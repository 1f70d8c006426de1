"""`cocite mcp`, as an assistant's client drives it."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager

import pytest
from tests.tools.serving.made_run import MODELS, states

mcp = pytest.importorskip("mcp")


@asynccontextmanager
async def started(results, cache):
    program = "from cocite.cli import main; main()"
    arguments = ["-c", program, "mcp", "--results", str(results), "--cache", str(cache)]
    async with mcp.Client(
        mcp.StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ})
    ) as client:
        yield client


async def asked(client, tool, **arguments):
    answer = await client.call_tool(tool, arguments)
    return answer.is_error, answer.structured_content["result"] if not answer.is_error else answer.content[0].text


def test_an_assistant_searches_looks_up_and_follows_citations_and_nothing_is_written(results, tmp_path):
    async def drive():
        async with started(results, tmp_path / "cache") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools.keys() == {"search", "similar", "look_up", "paper", "cited_by", "cites"}
            assert all(tool.annotations.read_only_hint for tool in tools.values())
            assert tools["search"].input_schema["required"] == ["text"]
            assert "unlike" in tools["similar"].input_schema["properties"]
            return [
                await asked(client, "similar", paper=[1, 2], unlike=["3"], k=3),
                await asked(client, "cited_by", paper=1),
                await asked(client, "cites", paper=1),
                await asked(client, "look_up", words="bees"),
                await asked(client, "similar", paper=[77]),
                await asked(client, "similar", paper=[1], k=1000),
            ]

    before = states(results)
    similar, cited_by, cites, known, unknown, wrong = asyncio.run(drive())
    assert len(similar[1]) == 3
    assert not {"1", "2", "3"} & {hit["paper"] for hit in similar[1]}
    assert [[paper["paper"] for paper in papers] for _, papers in (cited_by, cites, known)] == [
        ["3"],
        ["2"],
        ["7", "1"],
    ]
    assert unknown[0]
    assert f"Model {MODELS[0]} has no vector of paper 77: it is not in the corpus, or has no text." in unknown[1]
    assert wrong[0]
    assert "less than or equal to 100" in wrong[1]
    assert states(results) == before
