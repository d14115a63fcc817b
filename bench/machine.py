"""What the figures were measured on."""

import os
import pathlib
import platform
import re
import subprocess


def describe():
    cpu = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    memory = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8")
    return {
        "processor": first(r"model name\s*: (.*)", cpu),
        "family, model": ", ".join((first(r"cpu family\s*: (.*)", cpu), first(r"model\s*: (.*)", cpu))),
        "processors": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "memory GiB": round(int(first(r"MemTotal:\s*(\d+)", memory)) / 2**20),
        "system": f"{platform.system()} {platform.release()}, {system_name()}",
        "C library": " ".join(platform.libc_ver()),
        "compiler": command_line(["c++", "--version"]),
        "Python": platform.python_version(),
        "commit": command_line(["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty"]),
    }


def load():
    """How busy the machine is with other work; 0 when it is quiet."""
    return os.getloadavg()[0]


def cache_bytes():
    """Sizes of the data caches that one processor reaches, level by level."""
    sizes = []
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if (index / "type").read_text().strip() != "Instruction":
            text = (index / "size").read_text().strip()
            sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[text[-1]])
    return sizes


def level_of(size):
    """The innermost cache that holds so many bytes."""
    return next((f"L{level}" for level, cache in enumerate(cache_bytes(), 1) if size <= cache), "memory")


def caches():
    return ", ".join(f"L{level} {size >> 10} KiB" for level, size in enumerate(cache_bytes(), 1))


def first(pattern, text):
    match = re.search(pattern, text)
    return match[1].strip() if match else "unknown"


def system_name():
    path = pathlib.Path("/etc/os-release")
    return first(r'PRETTY_NAME="(.*)"', path.read_text(encoding="utf-8")) if path.exists() else "unknown"


def command_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"
