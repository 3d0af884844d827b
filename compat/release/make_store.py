#!/usr/bin/env python3
"""Makes stores/NAME.tar.xz with the built server: `make_store.py NAME`. Run it with the interpreter of the suite's environment."""
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from server import Server  # noqa: E402
from store import check, fill  # noqa: E402


def main(name):
    server = Server("make-store")
    server.start()
    fill(server.uri)
    check(server.uri)
    # Some of it is in runs, some in the log alone.
    server.terminate()
    server.start_again()
    check(server.uri)
    server.kill()
    with tarfile.open(HERE / "stores" / f"{name}.tar.xz", "w:xz", preset=9) as packed:
        packed.add(server.data, "data")


if __name__ == "__main__":
    main(*sys.argv[1:])
