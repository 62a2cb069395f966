"""A stand-in for the Go toolchain on PATH: it "builds" text files and "fetches" modules from a folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_GO: Final = """#!/bin/sh
if [ "$1" = env ]; then echo {version}; exit 0; fi
echo "$CGO_ENABLED $GOFLAGS $GOTOOLCHAIN $*" >> {log}
if [ "$1" = mod ]; then
  for last; do :; done
  answer={modules}/$(echo "$last" | tr / _).json
  if [ -e "$answer" ]; then cat "$answer"; ! grep -q '"Error"' "$answer"; exit; fi
  echo "dial tcp: no route to host" >&2; exit 1
fi
all="$*"
while [ $# -gt 1 ]; do if [ "$1" = -o ]; then target=$2; fi; shift; done
{body}
"""


class FakeGo:
    """The program, what it was asked, and the modules that it knows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.modules = folder / "modules"
        self.modules.mkdir(parents=True)
        self.write()

    def write(self, body: str = 'echo "$1" > "$target"', version: str = "go1.27.1") -> None:
        """Make it behave: `body` is a shell script that writes `$target`; `$1` is the package, `$all` the whole command."""
        program = self.folder / "go"
        text = _GO.format(version=version, log=self.log, modules=self.modules, body=body)
        program.write_text(text, encoding="utf-8")
        program.chmod(0o700)

    def serve(self, module: str, version: str, files: dict[str, str]) -> Path:
        """Let it know a module, and return the folder of its sources."""
        source = self.folder / "sources" / f"{module.replace('/', '_')}@{version}"
        for name, text in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text, encoding="utf-8")
        self._answer(module, version, {"Path": module, "Version": version, "Dir": str(source)})
        return source

    def refuse(self, module: str, version: str, error: str) -> None:
        """Let it answer with an error for a module."""
        self._answer(module, version, {"Path": module, "Version": version, "Error": error})

    def _answer(self, module: str, version: str, answer: dict[str, str]) -> None:
        name = f"{module}@{version}".replace("/", "_")
        (self.modules / f"{name}.json").write_text(json.dumps(answer), encoding="utf-8")

    @property
    def commands(self) -> list[str]:
        """What it was asked to do, in order."""
        return self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []

    @property
    def builds(self) -> list[str]:
        """The last part of each package that was built, in order."""
        asked = (line.rsplit(" ", 1)[1] for line in self.commands if " build " in line)
        return [package.rsplit("/", 1)[-1] for package in asked]
