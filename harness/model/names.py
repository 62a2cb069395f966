"""How scenarios and users name subjects and versions of Kubernetes. Only the shape; whether there is such a thing is asked later."""

from __future__ import annotations

import re
from typing import Any, Final

BUNDLED: Final = "bundled"
"""Our own controller."""
IN_CLUSTER: Final = "bundled@in-cluster"
"""The same as a Deployment in the drill's namespace: it reaches what only pods reach."""
CONTROLLER_IMAGE: Final = "DRILL_CONTROLLER_IMAGE"
"""The environment variable with the image of that, where no option names one."""
INSTALLED: Final = "installed"
"""A controller that is in the cluster already: observed only, never started, stopped or replaced by a drill."""
SUBJECT_FORMS: Final = (BUNDLED, IN_CLUSTER, "flagger@X.Y.Z", "flagger@path:FILE", INSTALLED)
"""The forms that a subject's name can have."""
SUBJECT: Final = r"^(bundled(@in-cluster)?|installed|flagger@(path:.+|v?\d+\.\d+\.\d+([-+][0-9A-Za-z][0-9A-Za-z.+-]*)?))$"
"""What a subject's name looks like."""
RELEASE: Final = r"^flagger@v?\d+\.\d+\.\d+([-+][0-9A-Za-z][0-9A-Za-z.+-]*)?$"
"""What a subject's name looks like when it is a released version of Flagger, whose sources can be asked."""
KUBERNETES_FORMS: Final = ("vX.Y", "vX.Y.Z")
"""The forms that a version of Kubernetes can have."""
KUBERNETES: Final = r"^v?1\.\d+(\.\d+)?$"
"""What a version of Kubernetes looks like."""


def is_subject(name: str) -> bool:
    """Return whether a text is a subject's name by its shape."""
    return re.match(SUBJECT, name) is not None


def is_bundled(name: str) -> bool:
    """Return whether a subject is our own controller, wherever it runs."""
    return name in {BUNDLED, IN_CLUSTER}


def label_part(value: Any) -> str:
    """Return a value as it stands in the id of a drill, without what shells and pytest dislike."""
    text = str(value).lower() if isinstance(value, bool) or value is None else str(value)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-") or "empty"


def label_cell(label: str) -> dict[str, str]:
    """Return the cell of a matrix that a drill's label names: `any,from=a,to=b` gives `{from: a, to: b}`."""
    return dict(part.partition("=")[::2] for part in label.split(",")[1:])
