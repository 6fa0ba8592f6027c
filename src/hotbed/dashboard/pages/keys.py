"""Who may ask for things here: keys, and the tenants that have asked. For operators."""

from __future__ import annotations

import time

from hotbed.dashboard.look import Look, Page


async def show(look: Look) -> Page:
    """The page. A key's secret is nowhere to be shown."""
    look.viewer.check_admin()
    house, admission = look.house, look.node.admission
    keys = house.keyring.all() if house.keyring is not None else ()
    now = time.time()
    values = {
        "keys": [(key, key.trouble(now) or "") for key in reversed(keys)],
        "tenants": [
            (tenant, admission.held(tenant.id), admission.waiting(tenant.id)) for tenant in house.tenants or ()
        ],
        "by_socket": house.keyring is None,
    }
    return Page(template="keys.html", title="Keys and tenants", values=values)
