#!/usr/bin/env python3
"""Instructions an element, counted under callgrind: a slow-down shows without a clock.

    bench/callgrind.py             prints the counts beside the stored ones
    bench/callgrind.py --check     fails (exit 1) when one is more than 3 % above what is stored
    bench/callgrind.py --update    stores them: after a change that is meant, with the reason in its commit

Counts belong to one compiler and one instruction set, AVX2, which valgrind runs and most processors have. With another
compiler than the stored one there is nothing to compare; --check says so and passes.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
STORED = HERE / "results" / "instructions.json"
ISA = "avx2"
MARGIN = 0.03


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build-bench", help="CMake's build folder")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail when a count is more than 3 %% above the stored one")
    what.add_argument("--update", action="store_true", help="store the counts")
    options = parser.parse_args(argv)

    program = options.build / "bench" / "instructions"
    if not program.exists():
        print(f"callgrind.py: {program} is missing; build the target instructions (needs valgrind's header)",
              file=sys.stderr)
        return 2
    found = {"compiler": compiler(options.build), "instruction set": ISA, "an element": count(program)}
    if options.update:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(f"stored: {STORED}", file=sys.stderr)
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    worse = compare(found, stored)
    if options.check and not stored:
        print(f"callgrind.py: {STORED} is missing; --update writes it", file=sys.stderr)
        return 1
    if options.check and stored["compiler"] != found["compiler"]:
        print(f"not compared: stored for {stored['compiler']}, built with {found['compiler']}")
        return 0
    return 1 if options.check and worse else 0


def compare(found, stored):
    """Prints every count; returns the names of those that grew beyond the margin or are not stored."""
    worse = []
    before = stored.get("an element", {})
    for name, value in found["an element"].items():
        old = before.get(name)
        change = "not stored" if old is None else f"{100 * (value / old - 1):+.1f} %"
        if old is None or value > old * (1 + MARGIN):
            worse.append(name)
            change += "   <-- more than stored"
        elif value < old * (1 - MARGIN):
            change += "   (fewer; --update keeps the gain)"
        print(f"{name:32} {value:8.3f}   {change}")
    for name in before.keys() - found["an element"].keys():
        print(f"{name:32}  stored, but not counted any more")
        worse.append(name)
    return worse


def count(program):
    """{case: instructions an element}."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ) | {"TRUENORM_ISA": ISA}
        command = ["valgrind", "--tool=callgrind", "--error-exitcode=9", f"--callgrind-out-file={folder}/out",
                   str(program)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0 or done.stdout.strip() != ISA:
            sys.exit(f"callgrind.py: {' '.join(command)} gave {done.returncode} and {done.stdout.strip()!r}; "
                     f"expected 0 and {ISA!r}\n{done.stderr}")
        dumps = sorted(pathlib.Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        return dict(read_dump(path.read_text(encoding="utf-8")) for path in dumps)


def read_dump(text):
    name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)[1].strip()
    total = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)[1])
    rows, d = map(int, name.split()[-1].split("x"))
    return name, round(total / (rows * d), 4)


def compiler(build):
    """Name and major version, from CMake's own record."""
    for path in build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        text = path.read_text(encoding="utf-8")
        kind = re.search(r'CMAKE_CXX_COMPILER_ID "(.*)"', text)[1]
        version = re.search(r'CMAKE_CXX_COMPILER_VERSION "(.*)"', text)[1]
        return f"{kind} {version.split('.')[0]}"
    return "unknown"


if __name__ == "__main__":
    sys.exit(main())
