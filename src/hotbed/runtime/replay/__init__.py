"""Deterministic replay: what a seeded rollout's randomness, clock and addresses are made of.

`client` is the node's handle; `supervisor` the process that answers the sandboxes' stopped calls; the rest is what it
answers with. The sandbox's half is `hotbed.guest.agent.pinning`.
"""
