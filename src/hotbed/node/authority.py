"""The authority that a node's sandboxes trust for hosts that are read: made for one run of the node, kept in memory.

A sandbox whose policy has something read inside TLS gets this authority's certificate; the broker asks for the
certificate of a host when a sandbox first goes there. The authority's key stays in the node: what the broker holds is
good for the hosts that it has asked for, in sandboxes of this node.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import NotSupported

if TYPE_CHECKING:
    from cryptography import x509

_DAYS = 397
_AUTHORITY_DAYS = 3650  # it ends with the node
_SKEW = timedelta(days=1)
_KEPT = 1024
_NAME_LIMIT = 64  # of a common name (RFC 5280, appendix A)


class Authority:
    """Signs for any name. Raises `NotSupported` where the library that does so is missing."""

    def __init__(self) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            raise NotSupported(
                "this node cannot read inside TLS: the package cryptography is missing",
                hint="pip install 'hotbed[node]'",
            ) from None
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign("Hotbed node (this run only)", authority=True)
        self._chains: OrderedDict[str, bytes] = OrderedDict()
        self._bundle = b""

    def certificate_pem(self) -> bytes:
        """What sandboxes are to trust."""
        from cryptography.hazmat.primitives import serialization

        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def bundle_pem(self) -> bytes:
        """The same with all that this machine trusts: hosts that are not read speak for themselves."""
        if not self._bundle:  # on the way of each fork that has something read
            found = ssl.get_default_verify_paths().cafile
            system = Path(found).read_bytes() if found and Path(found).is_file() else b""
            self._bundle = system.rstrip() + b"\n" + self.certificate_pem()
        return self._bundle

    def chain_pem(self, name: str) -> bytes:
        """A key and a certificate for a host."""
        from cryptography.hazmat.primitives import serialization

        chain = self._chains.get(name)
        if chain is None:
            key = self._leaf_key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            chain = key + self._sign(name, authority=False).public_bytes(serialization.Encoding.PEM)
            self._chains[name] = chain
            if len(self._chains) > _KEPT:
                self._chains.popitem(last=False)
        return chain

    def _sign(self, name: str, *, authority: bool) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.x509.oid import ExtendedKeyUsageOID

        now = datetime.now(timezone.utc)
        public = (self._key if authority else self._leaf_key).public_key()
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:_NAME_LIMIT])])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if authority else self._certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + timedelta(days=_AUTHORITY_DAYS if authority else _DAYS))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        builder = builder.add_extension(_usage(authority=authority), critical=True)
        if not authority:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            builder = builder.add_extension(purpose, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _usage(*, authority: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
