"""The lab's certificate authority and what it signs."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from numapin_lab.controlplane.certificates import Authority, Identity


def test_certificates_speak_for_a_user_and_its_groups(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    identity = Identity("system:node:lab", ("system:nodes",), ("127.0.0.1", "localhost"))
    path, key = authority.issue("kubelet", identity)
    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    ca = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    certificate.verify_directly_issued_by(ca)
    subject = {field.oid: field.value for field in certificate.subject}
    assert subject == {
        NameOID.COMMON_NAME: "system:node:lab",
        NameOID.ORGANIZATION_NAME: "system:nodes",
    }
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert key.stat().st_mode & 0o777 == 0o600
    assert isinstance(ca.public_key(), ec.EllipticCurvePublicKey)


def test_an_issued_certificate_stays(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    first = authority.issue("kubelet", Identity("a"))[0].read_bytes()
    authority.create()
    assert authority.issue("kubelet", Identity("a"))[0].read_bytes() == first
