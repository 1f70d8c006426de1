"""Search the finished results of a run in a browser: `cocite serve`.

A text or a paper goes in; out come the papers that two models place nearest, side by side, with what the graph and the
triplets say of each. It reads the results and writes nothing there; indexes lie in a cache of the user's.
"""

from pathlib import Path
from typing import Annotated

import typer

from cocite.core.options import ConfigFile, Results

app = typer.Typer(add_completion=False)

HOST = "127.0.0.1"
PORT = 8642


@app.command()
def serve(
    results: Results = Path("results"),
    configfile: ConfigFile = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name of a model, or model/seed; can be given again. Without it, all that have vectors."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder of the indexes, outside the results; else one in the user's cache.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address at which it is served; this machine alone reaches 127.0.0.1.")
    ] = HOST,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = PORT,
) -> None:
    """Search a finished run in a browser: the nearest papers by two models, and what the graph says of them."""
    import ipaddress
    import signal

    from cocite.core.progress import report
    from cocite.tools.inspection.opening import results_of
    from cocite.tools.serving.finished import open_run
    from cocite.tools.serving.search_indexes import default_cache
    from cocite.tools.serving.web import listen, server, url_of

    folder = results_of(results, configfile)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary folders are removed
    with open_run(folder, model or [], cache or default_cache(), configfile) as run, listen(host, port) as listening:
        if not ipaddress.ip_address(listening.getsockname()[0]).is_loopback:
            report(
                f"Warning: everyone who can reach {host} can search these results without a password; leave --host out "
                "to keep them to this machine."
            )
        report(f"Serving {folder} at {url_of(listening)} until Ctrl+C.")
        try:
            server(run, host).run(sockets=[listening])
        except KeyboardInterrupt:
            report("Ended.")
