"""``make demo``: make a table, serve it, show three requests, keep serving until Ctrl-C.

The requests use the standard library, as any HTTP client could.
"""

from __future__ import annotations

import argparse
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent, shorten
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

sys.path.insert(0, str(Path(__file__).parents[1]))  # this is run as a script

from examples.demo_data import make_demo_data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXAMPLES = Path(__file__).parent
QUERY = EXAMPLES / "query.json"
ROOT = EXAMPLES.parent / ".demo"
TEXT_MODEL = {
    "table": "wordnet",
    "column": "vector",
    "vocabulary": str(EXAMPLES / "minilm" / "vocab.txt"),
}
SETTINGS = ("--set", f"text_model={json.dumps(TEXT_MODEL)}")
HOST = "127.0.0.1"
READY_TIMEOUT_S = 600  # a first start compiles the kernels
SPINNER = "|/-\\"


def main() -> None:
    """Serve and show."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--once", action="store_true", help="exit after the examples")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on, if it is free")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server ends with us
    try:
        make_demo_data(ROOT)
        with serving(find_port(arguments.port), ROOT, SETTINGS) as (server, url):
            show_examples(url)
            show_commands(url)
            if not arguments.once:
                print("\nServing until Ctrl-C.", flush=True)
                server.wait()
    except KeyboardInterrupt:
        print("\nStopped.")


def find_port(wanted: int) -> int:
    """Return the port wanted, or a free one when something listens there already."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                print(f"port {port} is taken, looking for a free one")
                continue
            found: int = probe.getsockname()[1]
            return found
    raise SystemExit("no free port")


@contextmanager
def serving(
    port: int, root: Path = EXAMPLES / "data", settings: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run ``lance-serve`` on a folder of tables; it is ready when this returns."""
    command = [str(Path(sys.executable).with_name("lance-serve")), "serve", "--root", str(root)]
    options = ["--host", HOST, "--port", str(port), *settings]
    with tempfile.NamedTemporaryFile(
        prefix="lance-serve-demo-", suffix=".log", delete=False
    ) as sink:
        log = Path(sink.name)
        server = subprocess.Popen(  # noqa: S603 - our own command line
            [*command, *options], cwd=EXAMPLES.parent, stdout=sink, stderr=sink
        )
        url = f"http://{HOST}:{port}"
        try:
            wait_until_ready(server, url, log)
            print(f"lance-serve is ready at {url}, its log is {log}\n")
            yield server, url
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


def wait_until_ready(server: subprocess.Popen[bytes], url: str, log: Path) -> None:
    """Wait for ``/ready``, showing that time passes; give up when the server ends."""
    print("starting the server; the very first start compiles its kernels", flush=True)
    started = time.monotonic()
    while (elapsed := time.monotonic() - started) < READY_TIMEOUT_S and server.poll() is None:
        try:
            with urlopen(f"{url}/ready", timeout=5):  # noqa: S310 - our own server
                show_progress("")
                return
        except (URLError, OSError):
            turn = SPINNER[int(elapsed * 4) % len(SPINNER)]
            show_progress(f"{turn} {elapsed:.0f} s")
            time.sleep(0.25)
    raise SystemExit(f"the server did not become ready; it said:\n{log.read_text()}")


def show_progress(text: str) -> None:
    """Rewrite one line of a terminal; print nothing where nobody watches."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


def show_examples(url: str) -> None:
    """Run and show the three requests."""
    query = json.loads(QUERY.read_bytes())
    print('1. The entries nearest to row 1896, "piste: a ski run densely packed with snow"')
    answer = post(f"{url}/v1/table/wordnet/query", query)
    for row in answer["rows"]:
        print(f"   {row['_distance']:.3f}  {row['id']:>5}  {shorten(row['text'], 76)}")
    print(f"   stats: {json.dumps(answer['stats'])}\n")
    print("2. The same query explained")
    print(indent(post(f"{url}/v1/table/wordnet/explain_plan", {"query": query}), "   "), "\n")
    print("3. How many rows there are")
    print("  ", post(f"{url}/v1/table/wordnet/count_rows", {}), flush=True)


def show_commands(url: str) -> None:
    """Print the same requests for a terminal."""
    json_in = "-H 'Content-Type: application/json'"
    json_out = "-H 'Accept: application/json'"
    print(f"\nLook at it in a browser: {url}/console")
    print("\nThe same from another terminal, in this folder:")
    print(f"  curl -s {url}/v1/table/wordnet/query {json_in} {json_out} -d @examples/query.json")
    explain = "'{\"query\":'\"$(cat examples/query.json)\"'}'"
    print(f"  curl -s {url}/v1/table/wordnet/explain_plan {json_in} -d {explain}")
    print(f"  curl -s {url}/v1/table/wordnet/count_rows {json_in} -d '{{}}'", flush=True)


def post(url: str, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON is what it is
    """Post JSON and return the JSON answer."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    request = Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - our own server
    with urlopen(request, timeout=60) as answer:  # noqa: S310 - our own server
        return json.load(answer)


if __name__ == "__main__":
    main()
