# SPDX-License-Identifier: Apache-2.0
"""CUDA's runtime and NCCL: wheels from PyPI, unpacked into the build folder, or what this machine has."""
import ctypes
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

WHEELS = ("nvidia-nccl-cu12==2.28.9", "nvidia-cuda-runtime-cu12==12.9.79",
          "nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-cccl-cu12==12.9.27")


@dataclass(frozen=True)
class Cuda:
    includes: tuple
    libraries: tuple


class Lacks(Exception):
    """The text says what could not be had."""


def fetch(folder):
    """The wheels, unpacked; kept from run to run."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / ("unpacked-" + "-".join(w.rpartition("=")[2] for w in WHEELS))
    if not done.exists():
        got = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d",
                              folder, *WHEELS], capture_output=True, text=True)
        if got.returncode:
            raise Lacks(got.stderr.strip()[-500:])
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as z:
                z.extractall(folder)
            wheel.unlink()
        done.touch()
    root = folder / "nvidia"
    return Cuda(tuple(root / part / "include" for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl", "nccl")),
                (root / "nccl/lib/libnccl.so.2", root / "cuda_runtime/lib/libcudart.so.12"))


def installed(folders):
    """What is below these folders, as a package manager or pip put it there."""
    def find(*names):
        for folder in folders:
            for name in names:
                for path in sorted(Path(folder).rglob(name)):
                    return path.resolve()
        raise Lacks(f"no {names[0]} below {', '.join(map(str, folders))}")
    headers = {find(name).parent for name in ("nccl.h", "cuda_runtime_api.h", "crt/host_defines.h", "nv/target")}
    includes = {path.parent if path.name in ("crt", "nv") else path for path in headers}
    return Cuda(tuple(sorted(includes)), (find("libnccl.so.2"), find("libcudart.so.1[0-9]", "libcudart.so.1[0-9].*")))


def has_gpu():
    """Whether the driver is there and finds a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
