"""The one table of routes, read by the server to serve and by the SDK to call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotbed.wire import (
    checks,
    egress,
    execs,
    grading,
    health,
    jobs,
    ledger,
    live,
    pools,
    sandboxes,
    snapshots,
    templates,
    tunnels,
    usage,
)

KEY_HEADER = "idempotency-key"
LEASE_HEADER = "x-hotbed-lease"
TRACE_HEADER = "traceparent"
API_HEADER = "x-hotbed-api"  # a request with a key says by it that it speaks our API, not the published gateway's
NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One operation. `request` and `reply` are wire types; None means no body, or one that is not JSON."""

    name: str
    method: str
    path: str
    request: type[Any] | None = None
    reply: type[Any] | None = None
    status: int = 200

    def url(self, **segments: str) -> str:
        """The path with its `{segments}` filled in, each percent-encoded. Raises `InvalidRequest` for an empty one."""
        return self.path.format(**{name: checks.segment(name, value) for name, value in segments.items()})


HEALTH = Route(name="health", method="GET", path="/v1/health", reply=health.Health)
CAPABILITIES = Route(name="capabilities", method="GET", path="/v1/capabilities")
STATS = Route(name="stats", method="GET", path="/v1/stats")
HOLD_LEASE = Route(name="hold_lease", method="GET", path="/v1/leases/hold")
RELEASE_LEASE = Route(name="release_lease", method="DELETE", path="/v1/leases/{id}", reply=sandboxes.Deleted)
METRICS = Route(name="metrics", method="GET", path="/metrics")
USAGE = Route(name="usage", method="GET", path="/v1/usage", reply=usage.UsageReport)
AUDIT = Route(name="audit", method="GET", path="/v1/audit", reply=usage.AuditPage)
OPENAPI = Route(name="openapi", method="GET", path="/openapi.json")

CREATE_TEMPLATE = Route(
    name="create_template",
    method="POST",
    path="/v1/templates",
    request=templates.CreateTemplate,
    reply=templates.TemplateRow,
    status=201,
)
LIST_TEMPLATES = Route(name="list_templates", method="GET", path="/v1/templates", reply=templates.TemplateList)
DELETE_TEMPLATE = Route(
    name="delete_template", method="DELETE", path="/v1/templates/{name}", reply=templates.TemplateDeleted
)
EXPECT_SANDBOXES = Route(
    name="expect_sandboxes",
    method="POST",
    path="/v1/templates/{name}/expect",
    request=templates.ExpectSandboxes,
    reply=templates.TemplateRow,
)
LIST_IMAGES = Route(name="list_images", method="GET", path="/v1/images", reply=templates.ImageList)
GET_TEMPLATE = Route(name="get_template", method="GET", path="/v1/templates/{name}", reply=templates.TemplateRow)

CREATE_SANDBOX = Route(
    name="create_sandbox",
    method="POST",
    path="/v1/sandboxes",
    request=sandboxes.CreateSandbox,
    reply=sandboxes.SandboxCreated,
    status=201,
)
DELETE_SANDBOXES = Route(
    name="delete_sandboxes",
    method="POST",
    path="/v1/sandboxes/delete",
    request=sandboxes.Selector,
    reply=sandboxes.SandboxesDeleted,
)
LIST_SANDBOXES = Route(name="list_sandboxes", method="GET", path="/v1/sandboxes", reply=sandboxes.SandboxList)
GET_SANDBOX = Route(name="get_sandbox", method="GET", path="/v1/sandboxes/{id}", reply=sandboxes.SandboxRow)
DELETE_SANDBOX = Route(name="delete_sandbox", method="DELETE", path="/v1/sandboxes/{id}", reply=sandboxes.Deleted)

FORK_SANDBOX = Route(
    name="fork_sandbox",
    method="POST",
    path="/v1/sandboxes/{id}/fork",
    request=live.ForkSandbox,
    reply=live.SandboxForked,
    status=201,
)
SNAPSHOT_SANDBOX = Route(
    name="snapshot_sandbox",
    method="POST",
    path="/v1/sandboxes/{id}/snapshots",
    request=live.SnapshotSandbox,
    reply=snapshots.SnapshotRow,
    status=201,
)
SUSPEND_SANDBOX = Route(
    name="suspend_sandbox", method="POST", path="/v1/sandboxes/{id}/suspend", reply=live.SandboxState
)
RESUME_SANDBOX = Route(name="resume_sandbox", method="POST", path="/v1/sandboxes/{id}/resume", reply=live.SandboxState)

EXEC = Route(
    name="exec",
    method="POST",
    path="/v1/sandboxes/{id}/exec",
    request=execs.ExecRequest,
    reply=execs.ExecResponse,
)
ROLLOUT = Route(
    name="rollout",
    method="POST",
    path="/v1/rollouts",
    request=execs.RolloutRequest,
    reply=execs.ExecResponse,
)

GET_EGRESS = Route(name="get_egress", method="GET", path="/v1/sandboxes/{id}/egress", reply=egress.EgressState)
CHANGE_EGRESS = Route(
    name="change_egress",
    method="PUT",
    path="/v1/sandboxes/{id}/egress",
    request=egress.ChangeEgress,
    reply=egress.EgressState,
)
LIST_EGRESS = Route(name="list_egress", method="GET", path="/v1/egress", reply=egress.EgressList)

GRADE = Route(name="grade", method="POST", path="/v1/grade", request=grading.GradeRequest)
LIST_ROLLOUTS = Route(name="list_rollouts", method="GET", path="/v1/rollouts", reply=ledger.RolloutList)
SHOW_ROLLOUT = Route(name="show_rollout", method="GET", path="/v1/rollouts/{id}", reply=ledger.RolloutDetail)
REPLAY = Route(name="replay", method="POST", path="/v1/rollouts/{id}/replay", reply=ledger.ReplayReport)
REPLAY_GROUP = Route(name="replay_group", method="POST", path="/v1/groups/{id}/replay", reply=ledger.GroupReplay)

START_JOB = Route(
    name="start_job",
    method="POST",
    path="/v1/sandboxes/{id}/jobs",
    request=execs.ExecRequest,
    reply=jobs.JobRow,
    status=201,
)
LIST_JOBS = Route(name="list_jobs", method="GET", path="/v1/sandboxes/{id}/jobs", reply=jobs.JobList)
GET_JOB = Route(name="get_job", method="GET", path="/v1/sandboxes/{id}/jobs/{job}", reply=jobs.JobRow)
DELETE_JOB = Route(name="delete_job", method="DELETE", path="/v1/sandboxes/{id}/jobs/{job}", reply=sandboxes.Deleted)
JOB_OUTPUT = Route(name="job_output", method="GET", path="/v1/sandboxes/{id}/jobs/{job}/output", reply=jobs.JobOutput)
SIGNAL_JOB = Route(
    name="signal_job",
    method="POST",
    path="/v1/sandboxes/{id}/jobs/{job}/signal",
    request=jobs.SignalJob,
    reply=jobs.JobRow,
)
CONNECT_URL = Route(
    name="connect_url",
    method="POST",
    path="/v1/sandboxes/{id}/connect-url",
    request=tunnels.ConnectUrlRequest,
    reply=tunnels.ConnectUrl,
)

PUT_FILE = Route(name="put_file", method="PUT", path="/v1/sandboxes/{id}/files", reply=sandboxes.FileWritten)
GET_FILE = Route(name="get_file", method="GET", path="/v1/sandboxes/{id}/files")
HEAD_FILE = Route(name="head_file", method="HEAD", path="/v1/sandboxes/{id}/files")
FILE_OPERATION = Route(
    name="file_operation",
    method="POST",
    path="/v1/sandboxes/{id}/files",
    request=sandboxes.FileOperation,
    reply=sandboxes.FileAnswer,
)
PUT_TREE = Route(name="put_tree", method="PUT", path="/v1/sandboxes/{id}/tar", reply=sandboxes.TreeWritten)
GET_TREE = Route(name="get_tree", method="GET", path="/v1/sandboxes/{id}/tar")

GET_ENV_DIR = Route(name="get_env_dir", method="GET", path="/v1/env-dirs/{digest}", reply=pools.EnvDir)
PUT_ENV_DIR = Route(name="put_env_dir", method="PUT", path="/v1/env-dirs/{digest}", reply=pools.EnvDir)
CREATE_POOL = Route(
    name="create_pool",
    method="POST",
    path="/v1/pools",
    request=pools.CreatePool,
    reply=pools.PoolCreated,
    status=201,
)
LIST_POOLS = Route(name="list_pools", method="GET", path="/v1/pools", reply=pools.PoolList)
GET_POOL = Route(name="get_pool", method="GET", path="/v1/pools/{id}", reply=pools.PoolRow)
DELETE_POOL = Route(name="delete_pool", method="DELETE", path="/v1/pools/{id}", reply=sandboxes.Deleted)
END_WORKERS = Route(
    name="end_workers", method="POST", path="/v1/pools/{id}/end", request=pools.EndWorkers, reply=pools.WorkersEnded
)
RECORD_EPISODES = Route(
    name="record_episodes",
    method="POST",
    path="/v1/pools/{id}/episodes",
    request=pools.RecordEpisodes,
    reply=pools.EpisodesRecorded,
)
EXCHANGE = Route(name="exchange", method="POST", path="/v1/pools/{id}/exchange")
WORKER_OUTPUT = Route(
    name="worker_output", method="GET", path="/v1/pools/{id}/workers/{index}/output", reply=pools.WorkerOutput
)

TAKE_SNAPSHOT = Route(
    name="take_snapshot",
    method="POST",
    path="/v1/pools/{id}/snapshots",
    request=snapshots.TakeSnapshot,
    reply=snapshots.SnapshotRow,
    status=201,
)
RESTORE_WORKERS = Route(
    name="restore_workers",
    method="POST",
    path="/v1/pools/{id}/restore",
    request=snapshots.RestoreWorkers,
    reply=snapshots.WorkersRestored,
)
FORK_WORKER = Route(
    name="fork_worker",
    method="POST",
    path="/v1/pools/{id}/fork",
    request=snapshots.ForkWorker,
    reply=snapshots.WorkersRestored,
)
LIST_SNAPSHOTS = Route(name="list_snapshots", method="GET", path="/v1/snapshots", reply=snapshots.SnapshotList)
DELETE_SNAPSHOT = Route(name="delete_snapshot", method="DELETE", path="/v1/snapshots/{id}", reply=sandboxes.Deleted)

ROUTES: tuple[Route, ...] = (
    HEALTH,
    CAPABILITIES,
    STATS,
    METRICS,
    USAGE,
    AUDIT,
    OPENAPI,
    HOLD_LEASE,
    RELEASE_LEASE,
    CREATE_TEMPLATE,
    LIST_TEMPLATES,
    GET_TEMPLATE,
    DELETE_TEMPLATE,
    EXPECT_SANDBOXES,
    LIST_IMAGES,
    CREATE_SANDBOX,
    DELETE_SANDBOXES,
    LIST_SANDBOXES,
    GET_SANDBOX,
    DELETE_SANDBOX,
    FORK_SANDBOX,
    SNAPSHOT_SANDBOX,
    SUSPEND_SANDBOX,
    RESUME_SANDBOX,
    EXEC,
    ROLLOUT,
    GET_EGRESS,
    CHANGE_EGRESS,
    LIST_EGRESS,
    GRADE,
    LIST_ROLLOUTS,
    SHOW_ROLLOUT,
    REPLAY,
    REPLAY_GROUP,
    START_JOB,
    LIST_JOBS,
    GET_JOB,
    DELETE_JOB,
    JOB_OUTPUT,
    SIGNAL_JOB,
    CONNECT_URL,
    PUT_FILE,
    GET_FILE,
    HEAD_FILE,
    FILE_OPERATION,
    PUT_TREE,
    GET_TREE,
    GET_ENV_DIR,
    PUT_ENV_DIR,
    CREATE_POOL,
    LIST_POOLS,
    GET_POOL,
    DELETE_POOL,
    END_WORKERS,
    RECORD_EPISODES,
    EXCHANGE,
    WORKER_OUTPUT,
    TAKE_SNAPSHOT,
    RESTORE_WORKERS,
    FORK_WORKER,
    LIST_SNAPSHOTS,
    DELETE_SNAPSHOT,
)
