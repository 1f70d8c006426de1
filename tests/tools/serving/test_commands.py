"""`cocite serve` and `cocite mcp` as commands: what they open, warn of, refuse, and answer to an assistant's client."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from tests.tools.builders import invoke, make_encoder, write_embedded
from tests.tools.serving.conftest import MODELS, states

from cocite.core.errors import InputError
from cocite.tools.finished_run import MissingError, open_run
from cocite.tools.run_answers import nearest
from cocite.tools.web import listen


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted_and_leaves_nothing(results, tmp_path, monkeypatch, ended_by):
    before = states(results)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    command = ["serve", "--results", results, "--cache", tmp_path / "cache", "--port", "0", "--model", "trained"]
    # A background process of a shell ignores interrupts.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{listen}; from cocite.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *map(str, command)], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            said = next(line for line in process.stderr if "Serving" in line)
            url = re.search(r"http://127\.0\.0\.1:\d+/", said)[0]
            with urllib.request.urlopen(f"{url}api/run", timeout=60) as response:  # noqa: S310
                run = json.load(response)
        finally:
            process.send_signal(ended_by)
        assert "Ended." in process.stderr.read()
    assert process.returncode == 0
    assert run["models"] == [{"name": "trained/1", "known": None, "lists": 0, "map": "trained/1"}]
    assert run["papers"] == 40
    assert states(results) == before
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_taken_port_and_a_host_that_is_no_address_of_this_machine_are_named(results, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"^Port {port} of 127.0.0.1 is taken by another program; name another"):
            invoke("serve", "--results", results, "--cache", tmp_path, "--port", port)
    for host in ("no such host", "192.0.2.1"):
        with pytest.raises(InputError, match=f"--host {host}.*address"):
            listen(host, 0)


def test_other_machines_are_let_in_with_a_warning(results, tmp_path, monkeypatch):
    monkeypatch.setattr("uvicorn.Server.run", lambda self, sockets: None)
    warned = invoke("serve", "--results", results, "--cache", tmp_path, "--port", "0", "--host", "0.0.0.0").output  # noqa: S104
    assert "Warning: everyone who can reach 0.0.0.0 can search these results without a password" in warned
    assert "Warning" not in invoke("serve", "--results", results, "--cache", tmp_path, "--port", "0").output


def test_a_model_that_there_is_not_lists_the_choices_and_results_without_models_are_named(results, tmp_path):
    with pytest.raises(InputError, match="--model can be trained/1 or untrained_small/0"):
        invoke("serve", "--results", results, "--cache", tmp_path, "--model", "mode")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no trained model"):
        invoke("serve", "--results", tmp_path / "empty", "--cache", tmp_path / "cache")


def test_a_text_is_embedded_by_the_encoder_of_the_run(tmp_path):
    results = tmp_path / "run"
    folder = write_embedded(results, {1: ("bees collect", None), 2: ("loops", None), 3: (None, None)})
    with open_run(results, [], tmp_path / "cache") as run:
        found = nearest(run, "tiny/1", text="loops", k=2)
        assert [hit["title"] for hit in found] == ["loops", "bees collect"]
        assert found[0]["distance"] == pytest.approx(0, abs=1e-5)
        make_encoder(results, folder / "model", seed=2)
        with pytest.raises(MissingError, match=r"Model tiny/1 was made again .*; start `cocite serve` again"):
            nearest(run, "tiny/1", text="loops", k=2)
        assert [hit["title"] for hit in nearest(run, "tiny/1", paper=[2])] == ["bees collect"]


def test_an_encoder_that_is_made_again_before_its_first_text_answers_none(results, tmp_path):
    shutil.copytree(results, tmp_path / "run")
    model = tmp_path / "run/encoder/trained/seed-1/model/modules.json"
    with open_run(tmp_path / "run", ["trained"], tmp_path / "cache") as run:
        model.write_text("[ ]")
        os.utime(model, (1_000_000_000, 1_000_000_000))
        with pytest.raises(MissingError, match="Model trained/1 was made again"):
            nearest(run, "trained/1", text="loops")


def test_an_assistant_searches_looks_up_and_follows_citations_and_nothing_is_written(results, tmp_path):
    mcp = pytest.importorskip("mcp")
    program, cache = "from cocite.cli import main; main()", str(tmp_path / "cache")
    started = ["-c", program, "mcp", "--results", str(results), "--cache", cache]
    asked = [("similar", {"paper": [1, 2], "unlike": ["3"], "k": 3}), ("cited_by", {"paper": 1})]
    asked += [("cites", {"paper": 1}), ("look_up", {"words": "bees"})]
    asked += [("similar", {"paper": [77]}), ("similar", {"paper": [1], "k": 1000})]

    async def drive():
        server = mcp.StdioServerParameters(command=sys.executable, args=started, env={**os.environ})
        async with mcp.Client(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool(*request) for request in asked]

    before = states(results)
    tools, answers = asyncio.run(drive())
    assert tools.keys() == {"search", "similar", "look_up", "paper", "cited_by", "cites"}
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert tools["search"].input_schema["required"] == ["text"]
    assert "unlike" in tools["similar"].input_schema["properties"]
    similar, *others = ([paper["paper"] for paper in found.structured_content["result"]] for found in answers[:4])
    assert len(similar) == 3
    assert not {"1", "2", "3"} & {*similar}
    assert others == [["3"], ["2"], ["7", "1"]]
    assert all(wrong.is_error for wrong in answers[4:])
    unknown, too_many = (wrong.content[0].text for wrong in answers[4:])
    assert f"Model {MODELS[0]} has no vector of paper 77: it is not in the corpus, or has no text." in unknown
    assert "less than or equal to 100" in too_many
    assert states(results) == before
