"""Certificates of a private authority, and TLS in front of any server.

def test_x(authority: Authority) -> None:
    with Proxy(server.endpoint, tls=authority.server_context()) as proxy:        # https://localhost:...
        connect({"uri": proxy.endpoint, "tls.ca_file": str(authority.ca_file)})
    authority.server_context(client_needed=True)     # asks for a certificate of the client:
    authority.client_files()                         # its certificate and its key, for tls.cert_file, tls.key_file
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="the package cryptography is missing: it comes with the extra `dev`")
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_NAMES: Sequence[x509.GeneralName] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
)


class Authority:
    """Nobody knows it who was not told about `ca_file`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("private authority of the tests")
        self._certificate = self._sign(self._name, self._key.public_key(), authority=True)
        self.ca_file = self._write("ca.pem", self._certificate.public_bytes(serialization.Encoding.PEM))
        self._server = self._issue("server")

    def server_context(self, *, client_needed: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self._server)
        if client_needed:
            context.load_verify_locations(self.ca_file)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_files(self, name: str = "client") -> tuple[Path, Path]:
        """Certificate and key."""
        return self._issue(name)

    def _issue(self, name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(_name(name), key.public_key(), authority=False)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return (
            self._write(f"{name}.pem", certificate.public_bytes(serialization.Encoding.PEM)),
            self._write(f"{name}.key", key.private_bytes(*form)),
        )

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if authority:
            usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
            builder = builder.add_extension(usage, critical=True)
        else:
            builder = builder.add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, data: bytes) -> Path:
        file = self._folder / name
        file.write_bytes(data)
        return file


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))
