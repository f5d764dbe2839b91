#!/usr/bin/env python3
"""Checks who includes whom (docs/architecture.md) in include/ and src/; tests/ and bench/ are free.

Prints one line a fault, `file:line: what`, and exits with 1 if there is any. `--self-test` plants each kind of fault
in a small tree and checks that it is found.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Iterator, NamedTuple

# --- The rules ---------------------------------------------------------------------------------------------------

NN_AND_BELOW = {"base", "tensor", "ops", "kv", "checkpoint", "nn"}

# Folder of src/ -> folders of src/ that it may include besides itself.
MAY_INCLUDE = {
    "base": set(),
    "tensor": {"base"},
    "checkpoint": {"base", "tensor"},
    "kv": {"base", "tensor"},
    "ops": {"base", "tensor"},
    "text": {"base"},
    "nn": NN_AND_BELOW,
    "target": NN_AND_BELOW,
    "draft": NN_AND_BELOW,
    "verify": {"base", "tensor", "ops"},
    "head": NN_AND_BELOW | {"draft", "verify"},
    "engine": NN_AND_BELOW | {"target", "draft", "verify"},
    "api": NN_AND_BELOW | {"target", "draft", "verify", "engine", "text"},
    "cli": {"base"},
    "server": {"base"},
}

# Folder -> public headers (include/blockdraft) that it may include. Any folder may include these:
PUBLIC_FOR_ALL = {"blockdraft/result.h"}
ALL_PUBLIC = {"head", "api", "cli", "server"}
MAY_INCLUDE_PUBLIC = {"text": {"blockdraft/tokenizer.h"}}

# Folder -> folders that its CMake target may link beyond those it may include: what implements the public headers.
MAY_LINK = {"cli": {"api"}, "server": {"api"}}

# Start of a library header -> folders that may include it. What is not listed here is the system's and free to use.
LIBRARIES = {
    "nlohmann/": {"base"},  # through base/json.h
    "spdlog/": {"base"},  # through base/log.h
    "fmt/": set(MAY_INCLUDE),
    "pcre2": {"text"},
    "utf8proc": {"text"},
    "CLI/": {"cli"},
    "httplib": {"server"},
    "gtest/": set(),
    "gmock/": set(),
    "benchmark/": set(),
}

CUDA_HEADER = re.compile(r"^(cuda|cublas|cooperative_groups|nccl|mma\.h|nv/)")
CUDA_FILE = re.compile(r"^src/tensor/cu(?:da|blas)_\w+\.cpp$|^src/ops/cuda/")  # the only files that may include one

STANDARD_HEADERS = set("""
algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint
cstdio cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem format forward_list fstream
functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator semaphore
set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string string_view syncstream
system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant vector
version stdbool.h stddef.h stdint.h
""".split())

# --- Reading -----------------------------------------------------------------------------------------------------

SOURCE_SUFFIXES = {".h", ".hpp", ".cuh", ".c", ".cpp", ".cc", ".cu", ".inc"}
HEADER_SUFFIXES = {".h", ".hpp", ".cuh"}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
INCLUDE = re.compile(r"^\s*#\s*include\s*(.*?)\s*(?://.*)?$")
NAME = re.compile(r'^(?:"(?P<quoted>[^"]+)"|<(?P<angled>[^>]+)>)$')


class Include(NamedTuple):
    line: int
    name: str  # empty when it is neither "..." nor <...>
    quoted: bool
    text: str


def includes(text: str) -> Iterator[Include]:
    """The #include lines of a source text, those in block comments left out."""
    text = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    for number, line in enumerate(text.splitlines(), start=1):
        found = INCLUDE.match(line)
        if not found:
            continue
        name = NAME.match(found.group(1))
        if name:
            yield Include(number, name["quoted"] or name["angled"], name["quoted"] is not None, found.group(1))
        else:
            yield Include(number, "", False, found.group(1))


def cmake_modules(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """(line, name, MODULES) of each blockdraft_module call in a CMakeLists text."""
    for call in re.finditer(r"\bblockdraft_module\s*\(([^)]*)\)", text):
        words = call.group(1).split()
        modules, taking = [], False
        for word in words[1:]:
            if word in ("SOURCES", "CUDA_SOURCES", "MODULES", "LIBRARIES"):
                taking = word == "MODULES"
            elif taking:
                modules.append(word)
        yield text.count("\n", 0, call.start()) + 1, words[0] if words else "", modules


# --- Checking ----------------------------------------------------------------------------------------------------


def check_src_include(path: str, folder: str, include: Include) -> Iterator[str]:
    """Faults of one include of a file in src/<folder>/."""
    name, top = include.name, include.name.split("/")[0]
    if top == "blockdraft":
        allowed = PUBLIC_FOR_ALL | MAY_INCLUDE_PUBLIC.get(folder, set())
        if folder not in ALL_PUBLIC and name not in allowed:
            yield f"folder '{folder}' may not include '{name}', of the public headers only {sorted(allowed)}"
    elif top in MAY_INCLUDE and "/" in name:
        if top != folder and top not in MAY_INCLUDE[folder]:
            yield f"folder '{folder}' may not include '{name}', only {sorted(MAY_INCLUDE[folder] | {folder})}"
        elif not include.quoted:
            yield f"write \"{name}\", not <{name}>: it is our own header"
    elif include.quoted:
        yield f"'{name}' is not relative to src/ or include/"
    elif CUDA_HEADER.match(name):
        if not CUDA_FILE.search(path):
            yield f"<{name}> may be included only by src/tensor/cu(da|blas)_*.cpp and src/ops/cuda/"
    else:
        for start, folders in LIBRARIES.items():
            if name.startswith(start) and folder not in folders:
                yield f"folder '{folder}' may not include <{name}>, only {sorted(folders) or 'tests and benchmarks'} may"


def check_public_include(include: Include) -> Iterator[str]:
    """Faults of one include of a public header."""
    if include.quoted and not include.name.startswith("blockdraft/"):
        yield f"a public header may not include '{include.name}', only the standard library and blockdraft/ headers"
    elif not include.quoted and include.name not in STANDARD_HEADERS:
        yield f"a public header may not include <{include.name}>, only the standard library and blockdraft/ headers"


def check_source(root: Path, file: Path) -> Iterator[str]:
    """Faults of one header or source file, as 'line: what'."""
    path = file.relative_to(root).as_posix()
    text = file.read_text(encoding="utf-8")
    if file.suffix in HEADER_SUFFIXES and not re.search(r"^\s*#\s*pragma\s+once\b", COMMENT.sub("", text), re.MULTILINE):
        yield "1: header without '#pragma once'"
    parts = path.split("/")
    for include in includes(text):
        if not include.name:
            faults = iter([f"an include has to name its file, found '{include.text}'"])
        elif include.name.startswith("."):
            faults = iter([f"'{include.name}' is relative to this file; write the path from src/ or include/"])
        elif parts[0] == "include":
            faults = check_public_include(include)
        else:
            faults = check_src_include(path, parts[1], include)
        for fault in faults:
            yield f"{include.line}: {fault}"


def check_cmake(file: Path, folder: str) -> Iterator[str]:
    """Faults of src/<folder>/CMakeLists.txt, as 'line: what'."""
    text = re.sub(r"#[^\n]*", "", file.read_text(encoding="utf-8"))
    allowed = MAY_INCLUDE[folder] | MAY_LINK.get(folder, set())
    for line, name, modules in cmake_modules(text):
        if name != folder:
            yield f"{line}: blockdraft_module '{name}' in folder '{folder}'; one target a folder, of the same name"
        for module in modules:
            if module not in allowed:
                yield f"{line}: target '{folder}' may not link '{module}', only {sorted(allowed)}"
    for target in re.finditer(r"\bblockdraft_(\w+)", text):  # links written by hand
        if target[1] in MAY_INCLUDE and target[1] not in allowed | {folder}:
            line = text.count("\n", 0, target.start()) + 1
            yield f"{line}: target '{folder}' may not use 'blockdraft_{target[1]}', only {sorted(allowed)}"


def check_tree(root: Path) -> list[str]:
    """All faults of the tree at `root`, as 'file:line: what'."""
    faults = []
    for top in ("include", "src"):
        for file in sorted((root / top).rglob("*")):
            if not file.is_file():
                continue
            path = file.relative_to(root)
            folder = path.parts[1] if len(path.parts) > 2 else None
            if top == "src" and folder is not None and folder not in MAY_INCLUDE:
                found = iter([f"1: no rule says what folder '{folder}' may include"])
            elif file.suffix in SOURCE_SUFFIXES:
                found = iter(["1: sources belong into a folder of src/"]) if folder is None else check_source(root, file)
            elif file.name == "CMakeLists.txt" and folder is not None:
                found = check_cmake(file, folder)
            else:
                continue
            faults += [f"{path.as_posix()}:{fault}" for fault in found]
    return faults


# --- Self-test ---------------------------------------------------------------------------------------------------

SOUND = {
    "include/blockdraft/result.h": "#pragma once\n#include <string>\n",
    "include/blockdraft/engine.h": '#pragma once\n#include <vector>\n#include "blockdraft/result.h"\n',
    "src/base/json.h": '#pragma once\n#include <nlohmann/json.hpp>\n#include "blockdraft/result.h"\n',
    "src/text/bpe.cpp": '#include <pcre2.h>\n#include "blockdraft/tokenizer.h"\n/* #include "engine/x.h" */\n',
    "src/text/CMakeLists.txt": "blockdraft_module(text\n  SOURCES bpe.cpp\n  MODULES base\n  LIBRARIES PkgConfig::PCRE2)\n",
    "src/ops/cuda/linear.cu": '#include <cuda_runtime.h>\n#include "ops/linear.h"\n',
    "src/engine/cycle.cpp": '#include "draft/drafter.h"  // ours\n#include "kv/page_pool.h"\n',
    "src/cli/main.cpp": '#include <CLI/CLI.hpp>\n#include "blockdraft/engine.h"\n',
    "src/cli/CMakeLists.txt": "blockdraft_module(cli SOURCES main.cpp MODULES base api)\n",
}

PLANTED = [  # (file, text, what the fault says)
    ("src/text/a.cpp", '\n#include "engine/cycle.h"\n', "a.cpp:2: folder 'text' may not include 'engine/cycle.h'"),
    ("src/draft/a.cpp", '#include "target/target.h"\n', "folder 'draft' may not include 'target/target.h'"),
    ("src/engine/a.cpp", '#include "text/bpe.h"\n', "folder 'engine' may not include 'text/bpe.h'"),
    ("src/nn/a.cpp", "#  include <draft/drafter.h>\n", "folder 'nn' may not include 'draft/drafter.h'"),
    ("src/ops/a.cpp", "#include <tensor/shape.h>\n", "it is our own header"),
    ("src/nn/b.cpp", '#include "blockdraft/engine.h"\n', "folder 'nn' may not include 'blockdraft/engine.h'"),
    ("src/cli/a.cpp", '#include "engine/cycle.h"\n', "folder 'cli' may not include 'engine/cycle.h'"),
    ("src/head/a.cpp", '#include "target/target.h"\n', "folder 'head' may not include 'target/target.h'"),
    ("src/ops/b.cpp", '#include "../base/error.h"\n', "'../base/error.h' is relative to this file"),
    ("src/ops/c.cpp", '#include "error.h"\n', "'error.h' is not relative to src/ or include/"),
    ("src/ops/d.cpp", "#include HEADER\n", "an include has to name its file"),
    ("src/ops/linear.cpp", "#include <cuda_bf16.h>\n", "<cuda_bf16.h> may be included only by"),
    ("src/draft/b.cpp", "#include <nlohmann/json.hpp>\n", "folder 'draft' may not include <nlohmann/json.hpp>"),
    ("src/ops/e.h", "// #pragma once\n", "src/ops/e.h:1: header without '#pragma once'"),
    ("src/extra/a.cpp", "int x;\n", "no rule says what folder 'extra' may include"),
    ("src/main.cpp", "int x;\n", "sources belong into a folder"),
    ("include/blockdraft/a.h", "#pragma once\n#include <fmt/format.h>\n", "public header may not include <fmt/format.h>"),
    ("include/blockdraft/b.h", '#pragma once\n#include "base/error.h"\n', "public header may not include 'base/error.h'"),
    ("src/ops/CMakeLists.txt", "\nblockdraft_module(ops SOURCES a.cpp MODULES base nn)\n", "2: target 'ops' may not link 'nn'"),
    ("src/kv/CMakeLists.txt", "target_link_libraries(blockdraft_kv PUBLIC blockdraft_ops)\n", "may not use 'blockdraft_ops'"),
    ("src/nn/CMakeLists.txt", "blockdraft_module(layers SOURCES a.cpp)\n", "one target a folder, of the same name"),
]


def write_tree(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def self_test() -> int:
    """A sound tree gives no fault; each planted fault gives its own and no other."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        write_tree(Path(folder), SOUND)
        wrong += [f"in a sound tree: {fault}" for fault in check_tree(Path(folder))]
    for path, text, expected in PLANTED:
        with tempfile.TemporaryDirectory() as folder:
            write_tree(Path(folder), SOUND | {path: text})
            found = check_tree(Path(folder))
            if len(found) != 1 or expected not in found[0]:
                wrong.append(f"{path}: expected one fault with \"{expected}\", found {found}")
    print("\n".join(wrong + [f"self-test: {1 + len(PLANTED)} trees, {len(wrong)} wrong"]))
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the checkout")
    parser.add_argument("--self-test", action="store_true", help="check the checker")
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    everything = [file for top in ("include", "src") for file in (arguments.root / top).rglob("*")]
    files = sum(file.suffix in SOURCE_SUFFIXES for file in everything)
    if files == 0:
        print(f"{arguments.root}: no source below include/ or src/", file=sys.stderr)
        return 1
    faults = check_tree(arguments.root)
    for fault in faults:
        print(fault)
    print(f"{files} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
