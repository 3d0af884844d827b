#!/usr/bin/env python3
"""Types the examples of docs/*.md into mongosh, each page against a server of its own, and checks what they print.

A page says with `<!-- server: OPTIONS -->` what its server is started with. Standard library only.
"""
import os
import re
import subprocess
import sys

from server import REPOSITORY, Server

NODE_SUITE = REPOSITORY / "compat" / "node_suite.py"


def run(page):
    """True if every example of the page does what it says."""
    found = re.search(r"<!-- server: (.*) -->", page.read_text())
    options = found.group(1).split() if found else []
    with Server(f"documentation-{page.stem}", options) as server:
        environment = {**os.environ, "PANDO_URI": server.uri, "PANDO_PORT": str(server.port)}
        command = [str(NODE_SUITE), "mongosh", "node", "run.mjs", "--page", str(page)]
        return subprocess.run(command, env=environment).returncode == 0


def main():
    pages = [page for page in sorted((REPOSITORY / "docs").glob("*.md")) if "```js\n" in page.read_text()]
    return 0 if all([run(page) for page in pages]) else 1


if __name__ == "__main__":
    sys.exit(main())
