"""Images that cannot be pulled, and what a kubelet does about them. Pure.

A pull that fails shows as ErrImagePull, the pause before the next one as ImagePullBackOff: 10 s at first, then twice as
long each time, up to 5 minutes (upstream: pkg/kubelet/images/image_manager.go and pkg/kubelet/kubelet.go).
"""

from __future__ import annotations

import re
from typing import Any, Final

Obj = dict[str, Any]

UNPULLABLE: Final = r"^webserver:404$|:non-?existent$"
"""The images that the cases of upstream's end-to-end suite take for ones that do not exist."""
FAILED_MS: Final = 1_000.0  # how long ErrImagePull shows
_PAUSE_MS: Final = 10_000.0
_PAUSE_MAX_MS: Final = 300_000.0


def compiled(text: str) -> re.Pattern[str] | None:
    """None for no text: every image can be pulled. Raises ValueError with one line for a text that is no pattern."""
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression ({error}); write one such as 'foo:none'") from None


def unpullable(pod: Obj, pattern: re.Pattern[str] | None) -> dict[str, str]:
    """Name of a container -> its image, for those in whose image `pattern` is found."""
    if pattern is None:
        return {}
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    images = {container["name"]: container.get("image", "") for container in containers}
    return {name: image for name, image in images.items() if pattern.search(image)}


def waiting(image: str, looks: int) -> Obj:
    """Why a container waits, when its kubelet has looked at its pod so many times before."""
    if looks % 2:
        return {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
    return {"reason": "ErrImagePull", "message": f'image "{image}" not found: these simulated nodes cannot pull it'}


def pause_ms(looks: int) -> float:
    """How long until the next look."""
    return min(_PAUSE_MS * 2.0 ** (looks // 2), _PAUSE_MAX_MS) if looks % 2 else FAILED_MS
