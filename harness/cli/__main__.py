"""`python -m harness.cli`: the `drill` command, where no script of that name is installed (in an image, say)."""

from __future__ import annotations

from harness.cli.main import main

if __name__ == "__main__":
    main()
