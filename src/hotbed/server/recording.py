"""What a server for others keeps and sends besides its ledger: the audit log, and spans where somebody wants them."""

from __future__ import annotations

from pathlib import Path

from hotbed.node.keys.audit import Action, AuditLog, local_user
from hotbed.node.node import Node
from hotbed.server.settings import Settings
from hotbed.server.spans import Spans, spans_to


class Recording:
    """Both, from the start of a node to its end."""

    def __init__(self, node: Node, settings: Settings) -> None:
        node.audit = self._audit = open_audit(settings)
        self._spans: Spans | None = None
        if settings.otlp_endpoint:
            self._spans = spans_to(settings.otlp_endpoint, version=node.version)
            node.stats.heard = self._spans.ended

    def close(self) -> None:
        """Send and close."""
        if self._spans is not None:
            self._spans.close()
        if self._audit is not None:
            self._audit.close()


def open_audit(settings: Settings) -> AuditLog | None:
    """The audit log of a node that serves others. Its first line is how it was started."""
    if not settings.shared and not settings.port:
        return None
    audit = AuditLog(Path(settings.home), settings.database)
    told = {"tiers": dict(settings.tiers), "tls": bool(settings.tls_cert), "insecure": settings.insecure}
    where = f"{settings.host}:{settings.port}" if settings.port else str(settings.socket_path)
    audit.note(Action(actor=local_user(), action="server.start", target=where, details=told))
    return audit
