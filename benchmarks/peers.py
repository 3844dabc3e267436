"""Other libraries to measure against, each in a virtual environment of its own, made once and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HOME = Path.home() / ".cache" / "ukge-bench"
REQUIREMENTS = {
    # torch is named exactly: a range would pull gigabytes of CUDA libraries on machines without a GPU.
    "pykeen": ("torch==2.13.0", "pykeen==1.11.1"),
}


def peer_python(name: str) -> Path:
    """Return the Python that can import a peer; its environment is made at the first call, which takes minutes."""
    directory = HOME / f"{name}-venv"
    python = directory / "bin" / "python"
    if python.exists() and _imports(python, name):
        return python
    print(f"making an environment for {name} in {directory}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    for requirement in REQUIREMENTS[name]:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", requirement], check=True)
    return python


def _imports(python: Path, module: str) -> bool:
    return subprocess.run([str(python), "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
