"""The certificate authority of a lab, and what it signs."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(days=365)
BACKDATE = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Identity:
    """The subject of a certificate: a Kubernetes user, its groups, addresses of a server."""

    user: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def write_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Write a new private key; only its user may read the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return key


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder: ca.crt, ca.key, and `<name>.crt`, `<name>.key`."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """The certificate that clients and servers of this lab trust."""
        return self.folder / "ca.crt"

    def create(self) -> None:
        """Create the authority, if it does not exist."""
        if self.certificate.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        key = write_key(self.folder / "ca.key")
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "numapin-lab")])
        builder = _dated(name, name, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        _write(self.certificate, builder.sign(key, hashes.SHA256()))

    def issue(self, name: str, identity: Identity) -> tuple[Path, Path]:
        """Certificate and key files for `identity`; created on the first call only."""
        certificate, key_file = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        if certificate.exists():
            return certificate, key_file
        ca = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        ca_key = serialization.load_pem_private_key(
            (self.folder / "ca.key").read_bytes(), password=None
        )
        assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
        key = write_key(key_file)
        builder = (
            _dated(_subject(identity), ca.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
                ),
                critical=False,
            )
        )
        if identity.hosts:
            names = x509.SubjectAlternativeName(_alternatives(identity.hosts))
            builder = builder.add_extension(names, critical=False)
        _write(certificate, builder.sign(ca_key, hashes.SHA256()))
        return certificate, key_file


def _subject(identity: Identity) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in identity.groups]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, identity.user)])


def _alternatives(hosts: Sequence[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for host in hosts:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            found.append(x509.DNSName(host))
    return found


def _dated(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + LIFETIME)
    )


def _write(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
