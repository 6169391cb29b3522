"""Decimal integers in text as Go reads them (strconv.ParseInt, base 10, 64 bits)."""

_MIN, _MAX = -(2**63), 2**63 - 1
_DIGITS_MAX = 19


def parse_int64(text: str) -> int | None:
    """The number, or None where Go refuses the text: anything but a sign and ASCII digits, or out of range.

    Leading zeros are allowed; blanks and underscores, which int() takes, are not.
    """
    digits = text[1:] if text.startswith(("+", "-")) else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")
    if len(digits) > _DIGITS_MAX:  # int() raises ValueError for some thousand digits
        return None
    number = int(digits or "0")
    if text[0] == "-":
        number = -number
    return number if _MIN <= number <= _MAX else None
