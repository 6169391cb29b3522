"""The deletion cost a user puts on a pod.

Upstream: `pkg/apis/core/helper/helpers.go` (GetDeletionCostFromPodAnnotations).
"""

ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
_COST_MIN, _COST_MAX = -(2**31), 2**31 - 1
_DIGITS_MAX = len(str(_COST_MAX))


def parse(text: str | None) -> int:
    """The cost in the annotation; 0 when absent, malformed or outside 32 bits.

    Well-formed is `0`, or a first character `-` or `1`..`9` followed by a decimal integer: neither `+10` nor
    `008`, yet `-05` passes.
    """
    if not text or (text != "0" and text[0] not in "-123456789"):
        return 0
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text)
    if not (digits.isascii() and digits.isdigit()):  # int() would take 1_000 too
        return 0
    digits = digits.lstrip("0")
    if len(digits) > _DIGITS_MAX:  # int() refuses thousands of them
        return 0
    cost = sign * int(digits or "0")
    return cost if _COST_MIN <= cost <= _COST_MAX else 0
