#!/usr/bin/env python3
"""Runs the commands of a README: every ```sh block, in order, in the checkout that holds it.

A block runs in one shell, so that `cd`, variables and background programs hold within it, and every command of it has
to succeed. `build/cpu-release/bin` comes first in PATH. A block that cannot run says why in the line before it:

    <!-- not run: needs a GPU -->

Blocks in other shell dialects (```bash, ```console, ...) are refused, so that no command escapes the check.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

FENCE = re.compile(r"^\s*```+\s*([\w+-]*)")
NOT_RUN = re.compile(r"<!--\s*not run:\s*(.+?)\s*-->")
OTHER_SHELLS = {"bash", "shell", "zsh", "console", "shell-session"}


@dataclass
class Block:
    line: int  # of the first command, from 1
    lines: list[str] = field(default_factory=list)
    not_run: Optional[str] = None  # the reason, if there is one


def parse(text: str) -> list[Block]:
    """The ```sh blocks of a Markdown text. ValueError names the line of what cannot be checked."""
    blocks: list[Block] = []
    language = None  # of the fence we are in
    reason = None
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if language is None and fence:
            language = fence.group(1)
            if language in OTHER_SHELLS:
                raise ValueError(f"line {number}: a block of '{language}' is not run; write ```sh")
            if language == "sh":
                blocks.append(Block(number + 1, not_run=reason))
            reason = None
        elif fence:
            language = None
        elif language == "sh":
            blocks[-1].lines.append(line)
        elif language is None and line.strip():
            comment = NOT_RUN.search(line)
            reason = comment.group(1) if comment else None
    if language is not None:
        raise ValueError("the last block is not closed")
    return blocks


def is_complete(lines: list[str]) -> bool:
    """Whether the shell takes these lines as whole commands: no open quote, loop, here-document or trailing backslash."""
    if lines[-1].endswith("\\"):
        return False
    result = subprocess.run(["bash", "-n"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    return result.returncode == 0 and not result.stderr


def commands(block: Block) -> list[tuple[int, str]]:
    """(line number, text) of each command: the fewest lines that are complete. Comments and empty lines are dropped."""
    found: list[tuple[int, str]] = []
    pending: list[str] = []
    for offset, line in enumerate(block.lines):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        pending.append(line)
        if is_complete(pending):
            found.append((block.line + offset - len(pending) + 1, "\n".join(pending)))
            pending = []
    if pending:
        raise ValueError(f"line {block.line + len(block.lines) - len(pending)}: unfinished command: {pending[0]}")
    return found


def script(numbered: list[tuple[int, str]]) -> str:
    """One shell program that stops at the first command that fails, saying which, and leaves nothing running."""
    parts = ["set -o pipefail", "trap 'jobs -p | xargs -r kill' EXIT"]
    for number, command in numbered:
        parts.append(f"{{\n{command}\n}} || {{ echo \"line {number}: exit status $?\" >&2; exit 1; }}")
    return "\n".join(parts) + "\n"


def run(text: str, checkout: Path, timeout_s: float) -> tuple[Optional[int], str]:
    """Exit status (None: timed out) and output of a shell program; the whole process group ends with it."""
    environment = dict(os.environ, PATH=f"{checkout / 'build/cpu-release/bin'}:{os.environ.get('PATH', '')}")
    with subprocess.Popen(["bash", "-c", text], cwd=checkout, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=timeout_s)
            return process.returncode, output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return None, output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readme", type=Path, help="the Markdown file")
    parser.add_argument("--checkout", type=Path, help="where to run the commands (default: the folder of the file)")
    parser.add_argument("--timeout", type=float, default=1800, metavar="SECONDS", help="a block (default: %(default)s)")
    arguments = parser.parse_args()
    checkout = (arguments.checkout or arguments.readme.parent).resolve()

    try:
        blocks = [(block, commands(block)) for block in parse(arguments.readme.read_text(encoding="utf-8"))]
    except (OSError, ValueError) as error:
        print(f"{arguments.readme}: {error}", file=sys.stderr)
        return 2

    passed = failed = skipped = 0
    for block, numbered in blocks:
        place = f"{arguments.readme}:{block.line}"
        if block.not_run:
            skipped += len(numbered)
            print(f"{place}: {len(numbered)} not run: {block.not_run}", flush=True)
            continue
        status, output = run(script(numbered), checkout, arguments.timeout)
        if status == 0:
            passed += len(numbered)
            for number, command in numbered:
                print(f"{arguments.readme}:{number}: ok: {command.splitlines()[0]}", flush=True)
        else:
            failed += 1
            what = f"no end after {arguments.timeout:.0f} s" if status is None else "failed"
            text = "\n".join(command for _, command in numbered)
            print(f"{place}: {what}:\n{text}\n--- output\n{output}", flush=True)
    print(f"{passed} commands passed, {failed} blocks failed, {skipped} commands not run")
    if passed + failed == 0:
        print(f"{arguments.readme}: no command was run", file=sys.stderr)
        return 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
