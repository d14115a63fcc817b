"""What README.md says about building: each way gives a program that prints what the page says.

Optimized, the library is compiled anew only with TRUENORM_TEST_FULL=1. Otherwise the CMake ways that take the sources are
configured and no more (tests/consumer builds one), and the single compiler line runs with -O0.
"""

import os
import shutil
import subprocess

import pytest

from pages import ROOT, blocks, same_output

README = blocks(ROOT / "README.md")
FULL = os.environ.get("TRUENORM_TEST_FULL", "0") not in ("", "0")
PROGRAM = next(block for block in README if block.file == "examples/cpp/first.cpp")


def snippet(language, part):
    found = [block for block in README if block.language == language and part in block.text]
    assert len(found) == 1, f"README.md has {len(found)} blocks of {language} with {part!r}"
    return found[0]


@pytest.fixture
def project(tmp_path):
    """A folder with the program, and truenorm's sources where a project would keep them."""
    (tmp_path / "first.cpp").write_text(PROGRAM.text)
    (tmp_path / "third_party").mkdir()
    (tmp_path / "third_party" / "truenorm").symlink_to(ROOT)
    return tmp_path


def cmake_project(folder, text):
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(engine CXX)\nadd_executable(engine first.cpp)\n"
        "target_compile_features(engine PRIVATE cxx_std_20)\n" + text
    )
    return ["cmake", "-S", folder, "-B", folder / "build"]


def prints_what_the_page_says(got):
    assert same_output(PROGRAM.expected, got), got


def test_find_package(project, run):
    run(*cmake_project(project, snippet("cmake", "find_package").text))
    run("cmake", "--build", project / "build")
    prints_what_the_page_says(run(project / "build" / "engine"))


@pytest.mark.parametrize("way", ["FetchContent", "add_subdirectory"])
def test_as_a_part(way, project, run):
    fetched = snippet("cmake", "FetchContent").text
    text = fetched if way == "FetchContent" else "add_subdirectory(third_party/truenorm)\n" + fetched.splitlines()[-1]
    run(*cmake_project(project, text))
    if FULL:
        run("cmake", "--build", project / "build", "--parallel")
        prints_what_the_page_says(run(project / "build" / "engine"))


def test_meson(project, run, environment):
    if shutil.which("meson", path=environment["PATH"]) is None or shutil.which("ninja") is None:
        pytest.skip("meson or ninja is not installed")
    (project / "meson.build").write_text(snippet("meson", "dependency").text)
    run("meson", "setup", project / "build", project)
    run("meson", "compile", "-C", project / "build")
    prints_what_the_page_says(run(project / "build" / "engine"))


def test_single_compiler_line(tmp_path, environment):
    for name in ("include", "src", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    line = snippet("sh", "src/kernels/*.cc").text
    assert "-O2" in line
    line = line if FULL else line.replace("-O2", "-O0")
    subprocess.run(["sh", "-e", "-c", line], cwd=tmp_path, env=environment, check=True)
    prints_what_the_page_says(subprocess.run([tmp_path / "first"], check=True, capture_output=True, text=True).stdout)


def test_examples_project(tmp_path, run):
    run("cmake", "-S", ROOT / "examples", "-B", tmp_path / "build")
    run("cmake", "--build", tmp_path / "build")
    names = [path.stem for folder in ("c", "cpp") for path in (ROOT / "examples" / folder).iterdir()]
    assert names and all((tmp_path / "build" / name).exists() for name in names), names
