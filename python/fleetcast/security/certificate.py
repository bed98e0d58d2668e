"""A certificate for the gRPC listener, signed by an authority made for it alone.

The authority's private key is thrown away: nobody can sign a second certificate with it.
"""

from __future__ import annotations

import ipaddress
import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fleetcast.security.master_key import write_private

if TYPE_CHECKING:
    from pathlib import Path

_VALID = timedelta(days=3650)
_CLOCK_SKEW = timedelta(hours=1)


def create_certificate(folder: Path) -> None:
    """Makes `ca.pem`, `server.pem` and `server.key` in `folder`, for localhost and this host.

    Raises `OSError`, also where one of the files exists.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("fleetcast local authority")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(_name("fleetcast"), authority_name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(_alternatives()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    write_private(folder / "ca.pem", authority.public_bytes(pem))
    write_private(folder / "server.pem", certificate.public_bytes(pem))
    write_private(
        folder / "server.key",
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    (folder / "ca.pem").chmod(0o644)
    (folder / "server.pem").chmod(0o644)


def certificate_end(path: Path) -> datetime:
    """When the certificate stops being valid. Raises `OSError`, and `ValueError` for no PEM."""
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternatives() -> list[x509.GeneralName]:
    names = dict.fromkeys(["localhost", socket.gethostname()])
    loopback = [ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")]
    return [
        *(x509.DNSName(name) for name in names if name.isascii() and name),
        *(x509.IPAddress(address) for address in loopback),
    ]
