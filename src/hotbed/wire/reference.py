"""What the route table leaves unsaid: what each operation does, its query, its media types, and how it can fail.

`routes` is what both ends run on; this is what people, and the OpenAPI document, read about it. Every route has a note,
by its name. `errors` are codes of `hotbed.errors`; those of `EVERYWHERE` need not be listed again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotbed.wire import execs, grading, health
from hotbed.wire.routes import NDJSON

JSON = "application/json"
BYTES = "application/octet-stream"
TAR = "application/x-tar"

EVERYWHERE = (
    *("invalid_request", "unauthorized", "forbidden", "not_found", "lease_gone", "session_gone"),
    *("too_large", "rate_limited", "internal", "draining", "node_unavailable"),
)
_MAKES = ("unknown_template", "tier_limit", "at_capacity", "quota_exceeded", "isolation_unavailable", "sandbox_failed")
_FORKS = (*_MAKES, "template_failed", "invalid_seed", "bad_path", "not_supported", "no_space")
_RUNS = ("sandbox_failed", "sandbox_suspended", "bad_path", "invalid_seed", "no_space", "not_a_file", "file_denied")
_FILES = ("bad_path", "file_not_found", "not_a_file", "file_denied", "no_space", "sandbox_failed")
_LIVE = ("sandbox_suspended", "sandbox_busy", "snapshot_unsupported", "sandbox_failed", "not_supported")
_LEDGER = ("unknown_rollout",)
_SNAPSHOTS = ("snapshot_unsupported", "pool_busy", "pool_closed", "at_capacity", "quota_exceeded", "sandbox_failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A name in the query of a request. `kind` is a JSON type."""

    name: str
    says: str
    kind: str = "string"
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is to be known of one route. `lines` are the wire types of a stream's lines."""

    summary: str
    query: tuple[Parameter, ...] = ()
    takes: str = JSON
    gives: str = JSON
    lines: tuple[type[Any], ...] = ()
    errors: tuple[str, ...] = ()


PATH = Parameter(name="path", says="an absolute path in the sandbox", required=True)
MODE = Parameter(name="mode", says="the file's mode in octal, 644 unless given")
WAIT = Parameter(name="wait_s", says="wait so long at most, 60 s, until there is something to say", kind="number")
SINCE = Parameter(name="since", says="an offset in bytes; the `next` of the answer before", kind="integer")
PAGE = (
    Parameter(name="limit", says="how many, 1000 at most; 50 unless given", kind="integer"),
    Parameter(name="before", says="the `next` of the page before", kind="integer"),
)
FILTERS = tuple(
    Parameter(name=name, says=f"only where {name} is this")
    for name in ("template", "status", "kind", "sandbox_id", "group_id", "label")
)
ATTEMPTS = tuple(
    Parameter(name=name, says=f"only where {name} is this")
    for name in ("sandbox_id", "rollout_id", "template", "kind", "name", "verdict")
)
_EXEC_LINES = (execs.OutputEvent, execs.ResultEvent, execs.ErrorEvent)
_GRADE_LINES = (grading.GradeLine, grading.GradeDone, execs.ErrorEvent)

NOTES: Mapping[str, Note] = {
    "health": Note(summary="Whether the node is there, and how busy."),
    "capabilities": Note(summary="What this host allows, in the words of `hotbed doctor`."),
    "stats": Note(summary="Counters and histograms of node and backend."),
    "metrics": Note(summary="What the node counts, in Prometheus' text.", gives="text/plain"),
    "usage": Note(
        summary="What tenants used in the hours that a span of time touches, 30 days unless given.",
        query=(
            Parameter(name="since", says="an RFC 3339 time"),
            Parameter(name="until", says="an RFC 3339 time, now unless given"),
        ),
        errors=("not_supported",),
    ),
    "audit": Note(summary="What admins did, newest first.", query=PAGE, errors=("not_supported",)),
    "openapi": Note(summary="The OpenAPI 3.1 document of these operations."),
    "hold_lease": Note(
        summary="Hold a lease for as long as this answer lasts, or `ttl_s` longer, in which it can be held again.",
        query=(
            Parameter(name="id", says="a lease taken with `renew`, to hold again"),
            Parameter(name="renew", says="`true`: it outlives this connection by `ttl_s`"),
        ),
        gives=NDJSON,
        lines=(health.LeaseGranted,),
        errors=("lease_gone",),
    ),
    "release_lease": Note(
        summary="End a lease, and everything made under it.",
        errors=("lease_gone",),
    ),
    "create_template": Note(
        summary="Name a template and warm it, or begin to bake it. The same name and content again is the same one.",
        errors=("tier_limit", "at_capacity", "isolation_unavailable", "template_failed", "not_supported", "forbidden"),
    ),
    "list_templates": Note(summary="The templates that the caller can use."),
    "get_template": Note(summary="One template, and how far its bake is.", errors=("unknown_template",)),
    "expect_sandboxes": Note(
        summary="Say how many sandboxes of a template will be wanted at once, to have them parked; 0 takes it back.",
        errors=("unknown_template", "forbidden"),
    ),
    "delete_template": Note(
        summary="Forget a template, or give up its bake.",
        errors=("unknown_template", "template_in_use", "forbidden", "not_supported"),
    ),
    "list_images": Note(summary="What a template can be made from: the catalog, and what is unpacked here."),
    "create_sandbox": Note(summary="Fork a sandbox and keep it.", errors=_FORKS),
    "delete_sandboxes": Note(
        summary="End all sandboxes with the given ids, labels, group and lease; answered when nothing is left."
    ),
    "list_sandboxes": Note(summary="The caller's live sandboxes."),
    "get_sandbox": Note(summary="One live sandbox."),
    "delete_sandbox": Note(summary="End a sandbox; answered once it is killed, and the same the second time."),
    "fork_sandbox": Note(
        summary="Make sandboxes that start with the files of one at one instant: all of them, or none.",
        errors=(*_FORKS, *_LIVE, "invalid_spec"),
    ),
    "snapshot_sandbox": Note(summary="Keep a sandbox's files as they are now.", errors=(*_FORKS, *_LIVE)),
    "suspend_sandbox": Note(
        summary="Hold a sandbox still, and have the kernel take back what memory it can.", errors=_LIVE
    ),
    "resume_sandbox": Note(summary="Let a suspended sandbox go on.", errors=_LIVE),
    "exec": Note(
        summary="Run one thing in a sandbox: exactly one of `code`, `command` or `commands`.",
        lines=_EXEC_LINES,
        errors=_RUNS,
    ),
    "start_job": Note(
        summary="Run one thing in the background. It ends with its sandbox.", errors=(*_RUNS, "at_capacity")
    ),
    "list_jobs": Note(summary="A sandbox's jobs, as far as they are remembered."),
    "get_job": Note(summary="One job, with its result once it has ended.", query=(WAIT,)),
    "delete_job": Note(summary="Kill a job and forget it; answered when it has ended, and the same the second time."),
    "job_output": Note(summary="What a job printed from an offset on, as far as it is kept.", query=(SINCE, WAIT)),
    "signal_job": Note(summary="Signal a job's process group."),
    "connect_url": Note(
        summary="A WebSocket address that opens one port of a sandbox for a while. Nothing is started by asking.",
        errors=("tier_limit",),
    ),
    "rollout": Note(
        summary="Fork a sandbox, run one thing in it, discard it.", lines=_EXEC_LINES, errors=(*_FORKS, *_RUNS)
    ),
    "grade": Note(
        summary="Grade a group of candidates by one spec; a line for each as soon as it is known.",
        gives=NDJSON,
        lines=_GRADE_LINES,
        errors=("invalid_spec", "grading_failed", *_FORKS),
    ),
    "get_egress": Note(summary="What a sandbox may reach on the network."),
    "change_egress": Note(
        summary="Hold a living sandbox to another network policy.", errors=("sandbox_failed", "not_supported")
    ),
    "list_egress": Note(summary="What sandboxes tried on the network, newest first.", query=(*PAGE, *ATTEMPTS)),
    "list_rollouts": Note(summary="What ran, newest first.", query=(*PAGE, *FILTERS)),
    "show_rollout": Note(
        summary="One rollout with its request and output, by any unique beginning of its id.", errors=_LEDGER
    ),
    "replay": Note(summary="Run a rollout again in a fresh fork and compare.", errors=(*_LEDGER, *_FORKS, *_RUNS)),
    "replay_group": Note(summary="The same for every rollout of a group.", errors=(*_LEDGER, *_FORKS, *_RUNS)),
    "put_file": Note(summary="Write a file with the body's bytes.", query=(PATH, MODE), takes=BYTES, errors=_FILES),
    "get_file": Note(
        summary="A file's bytes, or one `Range` of them.",
        query=(PATH,),
        gives=BYTES,
        errors=(*_FILES, "range_unsatisfiable"),
    ),
    "head_file": Note(
        summary="A file's size, time and mode (`X-Hotbed-Mode`, octal), without its bytes.",
        query=(PATH,),
        gives=BYTES,
        errors=_FILES,
    ),
    "file_operation": Note(summary="Look at or change files: stat, list, remove, mkdir.", errors=_FILES),
    "put_tree": Note(summary="Extract a tar stream below a path.", query=(PATH,), takes=TAR, errors=_FILES),
    "get_tree": Note(
        summary="A path and what is below it as a tar stream; one that was cut short lacks its end-of-archive blocks.",
        query=(PATH,),
        gives=TAR,
        errors=_FILES,
    ),
    "get_env_dir": Note(summary="Whether an environment directory is here already.", errors=("bad_env_dir",)),
    "put_env_dir": Note(
        summary="Send an environment directory as a tar, named by its SHA-256.",
        takes=TAR,
        errors=("bad_env_dir", "no_space"),
    ),
    "create_pool": Note(
        summary="Start `n` workers of an environment directory.",
        errors=(*_FORKS, "bad_env_dir", "env_failed", "boltz_unavailable"),
    ),
    "list_pools": Note(summary="The caller's live pools."),
    "get_pool": Note(summary="One pool and its workers.", errors=("pool_closed",)),
    "delete_pool": Note(summary="End a pool; answered when nothing of its workers is left.", errors=("pool_closed",)),
    "end_workers": Note(
        summary="End workers that their client gave up, and say how each ended.", errors=("pool_closed",)
    ),
    "exchange": Note(
        summary="Pass frames to workers and back, for a client that is elsewhere.",
        takes=BYTES,
        gives=BYTES,
        errors=("pool_closed", "protocol_error", "deadline_exceeded"),
    ),
    "record_episodes": Note(
        summary="Keep episodes of a pool made with `record` in the ledger, as its client saw them.",
        errors=("pool_closed", "not_found"),
    ),
    "worker_output": Note(
        summary="What a worker's env.py has printed so far.", errors=("pool_closed", "sandbox_failed")
    ),
    "take_snapshot": Note(summary="Take a snapshot of one worker.", errors=_SNAPSHOTS),
    "restore_workers": Note(summary="Replace workers by what a snapshot was taken of.", errors=_SNAPSHOTS),
    "fork_worker": Note(summary="Replace workers by copies of another one.", errors=_SNAPSHOTS),
    "list_snapshots": Note(summary="The caller's live snapshots."),
    "delete_snapshot": Note(summary="Free a snapshot; freeing it twice is no error."),
}
