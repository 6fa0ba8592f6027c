"""What a node promises when a request does not say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from hotbed.node.egress import EgressSettings
from hotbed.node.pools import PoolSettings
from hotbed.node.scheduler import Admission

# Where tenants may fetch images from: an address they name is one that this node connects to.
REGISTRIES = ("docker.io", "ghcr.io", "quay.io", "gcr.io", "public.ecr.aws", "mcr.microsoft.com", "registry.k8s.io")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a node promises when a request does not say."""

    max_sandboxes: int
    queue_limit: int
    queue_wait_s: float
    ttl_s: float
    idle_ttl_s: float
    lease_ttl_s: float
    max_templates: int
    home: str = ""
    public_url: str = ""
    boltz_slots: int = 0
    images_mib: int = 32_768
    registries: tuple[str, ...] = REGISTRIES
    catalog: tuple[str, ...] = ()
    egress: EgressSettings = field(default_factory=EgressSettings)

    def admission(self) -> Admission:
        """What hands out its turns."""
        return Admission(limit=self.max_sandboxes, queue_limit=self.queue_limit, wait_s=self.queue_wait_s)

    @property
    def pools(self) -> PoolSettings:
        """What of it is about pools."""
        return PoolSettings(home=Path(self.home), boltz_slots=self.boltz_slots, ttl_s=self.ttl_s)
