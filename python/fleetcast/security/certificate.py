"""A certificate for the gRPC listener, signed by an authority made for this listener alone.

The authority's private key is kept sealed under the master key. So clients still trust a renewed
certificate, and a copy of the files alone cannot make another certificate.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fleetcast.engine import open_secret, seal_secret
from fleetcast.errors import OperatorError, StoreDamaged
from fleetcast.security.master_key import derive, replace_private, sync_folder, write_private

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_VALID = timedelta(days=3650)
_AUTHORITY_VALID = 2 * _VALID
_CLOCK_SKEW = timedelta(hours=1)
_AUTHORITY_PLACE = "key of the certificate authority"
_AUTHORITY_LABEL = "fleetcast certificate authority 1"
_CURVE = ec.SECP256R1()
_PRIVATE_KEY_BYTES = 32
_HOST_TYPES = (str, ipaddress.IPv4Address, ipaddress.IPv6Address)
_PEM = serialization.Encoding.PEM
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z)(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")


class _Authority(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class IssuedCertificate(NamedTuple):
    """A new certificate: its names and its end."""

    hosts: list[str]
    end: datetime
    is_authority_new: bool
    """True if clients must be given the new `ca.pem`."""


def certificate_hosts(hosts: Sequence[str]) -> list[str]:
    """Names and addresses of this machine, then `hosts`.

    Raises `OperatorError` if a host is neither a name nor an address. Example: on machine `rack7`,
    `["telemetry.example.com"]` gives `localhost`, `rack7`, `127.0.0.1`, `::1` and
    `telemetry.example.com`.
    """
    for host in hosts:
        _alternative(host)
    here = socket.gethostname()
    own = ["localhost", *([here] if _NAME.fullmatch(here) else []), "127.0.0.1", "::1"]
    return list(dict.fromkeys([*own, *hosts]))


def issue_certificate(
    folder: Path, master_key: bytes, hosts: Sequence[str] = ()
) -> IssuedCertificate:
    """Makes or replaces `server.pem` and its key in `folder`, by the same authority if possible.

    Without `hosts` the new certificate is valid for the names of the old certificate, if there is
    an old certificate. A new authority is made in three cases: the old key is missing, this master
    key cannot read it, or the authority would end before the certificate. Raises `OSError`. Raises
    `OperatorError` if a host is neither a name nor an address.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    names = certificate_hosts(hosts) if hosts else _kept_hosts(folder / "server.pem")
    kept = _kept_authority(folder, master_key)
    authority = kept or _new_authority()
    files = _authority_files(authority, master_key) | _server_files(authority, names)
    if kept:
        del files["ca.pem"]
    for name, content in files.items():
        new = folder / f"{name}.{os.getpid()}"
        new.unlink(missing_ok=True)  # of a process that was killed here
        write_private(new, content)
        _publish(new)
    for name in files:  # all files are on disk, so a rename is unlikely to fail
        (folder / f"{name}.{os.getpid()}").replace(folder / name)
    sync_folder(folder)
    return IssuedCertificate(names, certificate_end(folder / "server.pem"), kept is None)


def turn_authority(folder: Path, old: bytes, new: bytes) -> None:
    """Seals the authority's key under the master key `new`, if it is under `old`.

    A key that neither opens is left. Raises `OSError`.
    """
    path = folder / "ca.key"
    try:
        key = _opened(path.read_bytes(), old)
    except (FileNotFoundError, ValueError, StoreDamaged):
        return
    replace_private(path, _sealed(key, new))


def certificate_end(path: Path) -> datetime:
    """End of the certificate's validity. Raises `OSError`, and `ValueError` if it is no PEM."""
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def read_hosts(path: Path) -> list[str]:
    """Names and addresses that the certificate is valid for. Raises `OSError`, `ValueError`."""
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(each.value) for each in found.value if isinstance(each.value, _HOST_TYPES)]


def _kept_hosts(path: Path) -> list[str]:
    try:
        return read_hosts(path)
    except (OSError, ValueError):
        return certificate_hosts([])


def _new_authority() -> _Authority:
    key = ec.generate_private_key(_CURVE)
    name = _name("fleetcast local authority")
    certificate = (
        _builder(name, name, key.public_key(), datetime.now(UTC) + _AUTHORITY_VALID)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key)


def _kept_authority(folder: Path, master_key: bytes) -> _Authority | None:
    try:
        certificate = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
        key = _opened((folder / "ca.key").read_bytes(), master_key)
    except (OSError, ValueError, StoreDamaged):
        return None
    is_good = certificate.not_valid_after_utc >= datetime.now(UTC) + _VALID
    is_its_own = key.public_key() == certificate.public_key()
    return _Authority(certificate, key) if is_good and is_its_own else None


def _authority_files(authority: _Authority, master_key: bytes) -> dict[str, bytes]:
    return {
        "ca.key": _sealed(authority.key, master_key),
        "ca.pem": authority.certificate.public_bytes(_PEM),
    }


def _server_files(authority: _Authority, hosts: Sequence[str]) -> dict[str, bytes]:
    key = ec.generate_private_key(_CURVE)
    signer = authority.certificate.subject
    certificate = (
        _builder(_name("fleetcast"), signer, key.public_key(), datetime.now(UTC) + _VALID)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(map(_alternative, hosts)), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    content = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, plain)
    return {"server.key": content, "server.pem": certificate.public_bytes(_PEM)}


def _sealed(key: ec.EllipticCurvePrivateKey, master_key: bytes) -> bytes:
    number = key.private_numbers().private_value.to_bytes(_PRIVATE_KEY_BYTES)
    return seal_secret(master_key, _AUTHORITY_PLACE, number)


def _opened(content: bytes, master_key: bytes) -> ec.EllipticCurvePrivateKey:
    """Opens the bytes of `ca.key`. Raises `StoreDamaged`; for those of 0.3.0 `ValueError`."""
    if not content.startswith(b"-----BEGIN "):
        number = open_secret(master_key, _AUTHORITY_PLACE, content)
        return ec.derive_private_key(int.from_bytes(number), _CURVE)
    password = derive(master_key, _AUTHORITY_LABEL).hex().encode()
    key = serialization.load_pem_private_key(content, password)
    return cast("ec.EllipticCurvePrivateKey", key)  # only 0.3.0 wrote under this password


def _publish(path: Path) -> None:
    """Lets every user read a certificate, which is no secret."""
    if ".key" not in path.name:
        path.chmod(0o644)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.now(UTC) - _CLOCK_SKEW)
        .not_valid_after(end)
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


def _alternative(host: str) -> x509.GeneralName:
    """Returns the host as certificates name it. Raises `OperatorError`."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    if not _NAME.fullmatch(host):
        message = (
            f"--host {host!r} must be a name such as telemetry.example.com (others than of ASCII"
            " as xn--…) or an IP address, without a port"
        )
        raise OperatorError(message)
    return x509.DNSName(host)
