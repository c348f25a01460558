"""``Remote``: what addresses mean, and which are refused."""

from __future__ import annotations

import pytest

import tvm_mxplan
from tvm_mxplan import InvalidInputError, Remote
from tvm_mxplan.testing import zoo


@pytest.mark.parametrize(
    "remote, address, text",
    [
        (Remote(tracker="host:123", key="pi"), ("host", 123), "server 'pi' of the tracker host:123"),
        (Remote(tracker="host", key="pi"), ("host", 9190), "server 'pi' of the tracker host:9190"),
        (Remote(server="10.0.0.7"), ("10.0.0.7", 9090), "server at 10.0.0.7:9090"),
        (Remote(server="[::1]:99", key="pi"), ("::1", 99), "server 'pi' at ::1:99"),
    ],
)
def test_addresses(remote, address, text):
    assert remote.address == address
    assert str(remote) == text


@pytest.mark.parametrize(
    "given, message",
    [
        ({}, "expected the address of a tracker, or that of a server"),
        ({"tracker": "a", "server": "b", "key": "pi"}, "expected the address of a tracker, or"),
        ({"tracker": "host:9190"}, "tracker host:9190: no key given"),
        ({"server": "host:port"}, "'host:port': expected HOST or HOST:PORT, as in 192.168.0.7:9090"),
        ({"server": "host:70000"}, "'host:70000': expected HOST or HOST:PORT"),
        ({"tracker": "host:0", "key": "pi"}, "'host:0': expected HOST or HOST:PORT, as in 192.168.0.7:9190"),
        ({"server": "::1"}, "'::1': expected HOST"),
    ],
)
def test_what_is_no_address(given, message):
    with pytest.raises(InvalidInputError, match=message):
        Remote(**given)


def test_a_text_is_no_remote(tmp_path):
    with pytest.raises(InvalidInputError, match=r"remote='host:9190': expected a tvm_mxplan\.Remote"):
        tvm_mxplan.tune(zoo.load("tiny"), tmp_path / "r", remote="host:9190")
