"""What is deflated comes back as it was, and what is not ours is refused."""

import random
import zlib

import pytest

from oarlock.controllers.objects import deflated as module
from oarlock.controllers.objects.deflated import BYTES_MAX, deflated, inflated

TEMPLATE = b'{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1"}]}}'


@pytest.mark.parametrize("template", [TEMPLATE, b"{}", b"\x00" * 100_000], ids=["usual", "empty", "long"])
def test_a_template_comes_back(template: bytes) -> None:
    assert inflated(deflated(template)) == template


@pytest.mark.parametrize("size", [2_000, 4_090, 4_100, 8_200, 16_400, 32_800, 70_000])
def test_templates_on_either_side_of_a_window_come_back(size: int) -> None:
    template = random.Random(size).randbytes(size)
    assert inflated(deflated(template)) == template
    assert inflated(deflated(template.hex().encode())) == template.hex().encode()


def test_a_usual_template_takes_half_of_its_bytes() -> None:
    assert len(deflated(TEMPLATE)) < len(TEMPLATE) / 2


def test_what_was_stored_can_still_be_read() -> None:
    """Another dictionary would make all that is stored unreadable: it comes with another protocol."""
    assert inflated(bytes.fromhex("434d43e8b15f9e9a44447082542142342f3d33afc2ca101826b5b500")) == TEMPLATE


@pytest.mark.parametrize(
    "packed",
    [b"", b"{}", deflated(TEMPLATE)[:-1], deflated(TEMPLATE) + b"x", zlib.compress(TEMPLATE)],
    ids=["nothing", "as it is", "cut off", "with more", "with a header"],
)
def test_anything_else_is_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="it is"):
        inflated(packed)


def test_no_more_is_inflated_than_the_api_server_takes() -> None:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS, zdict=module._WORDS)
    with pytest.raises(ValueError, match="too long"):
        inflated(packer.compress(b"x" * (BYTES_MAX + 1)) + packer.flush())
