"""Every exception that Hotbed raises on purpose: one tree, each with a stable code.

    Error                      internal            500
    ├── InvalidRequest         invalid_request     400   what was asked makes no sense; nothing was run
    │   ├── InvalidSeed        invalid_seed        400
    │   ├── InvalidSpec        invalid_spec        400   a reward spec that cannot be graded
    │   ├── BadPath            bad_path            400
    │   ├── BadEnvDir          bad_env_dir         400
    │   ├── BadImage           bad_image           400   an image that is broken, hostile, or for another machine
    │   ├── BakeFailed         bake_failed         400   a setup command or a ready condition of a template failed
    │   ├── WrongActionCount   wrong_action_count  400
    │   ├── BadAction          bad_action          400
    │   ├── NotReset           not_reset           400
    │   ├── EpisodeDone        episode_done        400
    │   └── PoolBusy           pool_busy           409
    ├── Unauthorized           unauthorized        401
    ├── Forbidden              forbidden           403
    │   └── TierLimit          tier_limit          403   more than the tenant's tier ever allows; waiting is no use
    ├── NotFound               not_found           404
    │   ├── UnknownTemplate    unknown_template    404
    │   ├── FileMissing        file_not_found      404
    │   └── UnknownRollout     unknown_rollout     404
    ├── NotAFile               not_a_file          409   a directory, device or pipe where a regular file was asked for
    ├── FileDenied             file_denied         403   the sandbox's own permissions refuse
    ├── SandboxGone            session_gone        410   the sandbox ended: closed, expired, killed, or its node is gone
    │   └── LeaseGone          lease_gone          410   the lease named is not held here; retryable, nothing was run
    │   └── PoolClosed         pool_closed         410
    ├── TooLarge               too_large           413
    ├── NoSpace                no_space            507   the sandbox's disk, or the node's
    ├── AtCapacity             at_capacity         429   retryable, nothing was run
    │   ├── RateLimited        rate_limited        429
    │   └── QuotaExceeded      quota_exceeded      429   all that the tenant's tier allows is in use
    ├── SandboxSuspended       sandbox_suspended   409   it must be resumed first; nothing was run
    ├── SandboxBusy            sandbox_busy        409   something runs in it; retryable
    ├── TemplateInUse          template_in_use     409   sandboxes of the template live
    ├── KeyReused              key_reused          409   an idempotency key came with another request before
    ├── RangeUnsatisfiable     range_unsatisfiable 416   a file has nothing at that range
    ├── PortClosed             port_closed         502   nothing in the sandbox listens there, retryable
    ├── NotSupported           not_supported       501   this node cannot do that; nothing else is done instead
    ├── Draining               draining            503   retryable elsewhere, nothing was run
    ├── IsolationUnavailable   isolation_unavailable 503 this host cannot isolate at the level asked for
    ├── TemplateFailed         template_failed     500   the template could not be made or died
    ├── SandboxFailed          sandbox_failed      500   the sandbox could not be made
    ├── GradingFailed          grading_failed      500   the judge failed; no reward was formed
    ├── EnvFailed              env_failed          500   no task: the environment of that worker failed
    ├── BoltzUnavailable       boltz_unavailable   503   the node has no Boltz slots; nothing else is tried
    ├── SnapshotUnsupported    snapshot_unsupported 409  what runs there cannot be carried; the message names it
    ├── NodeUnavailable        node_unavailable    503   no node answers, retryable
    ├── DeadlineExceeded       deadline_exceeded   504   the node did not answer in time
    └── ProtocolError          protocol_error      502   an answer that is not ours

A program that fails inside a sandbox is a result with a `status`, never one of these. An exception means that *we*
failed, or that the request could not be served.
"""

from __future__ import annotations

from typing import Any, ClassVar


class Error(Exception):
    """Base of every exception this package raises on purpose."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    _by_code: ClassVar[dict[str, type[Error]]] = {}

    def __init__(self, message: str = "", *, hint: str | None = None, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.retry_after_s = retry_after_s

    def __init_subclass__(cls) -> None:
        if "code" not in vars(cls) or cls.code in Error._by_code or cls.code == Error.code:
            raise TypeError(f"{cls.__name__} needs a code of its own, not {cls.code!r}")
        Error._by_code[cls.code] = cls

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message

    def to_wire(self) -> dict[str, Any]:
        """The error body: both envelopes of the published client at once (`error` is text there), plus a hint."""
        body: dict[str, Any] = {
            "error": self.message or self.code,
            "error_code": self.code,
            "code": self.code,
            "message": self.message or self.code,
        }
        if self.hint:
            body["hint"] = self.hint
        return body

    @classmethod
    def from_wire(
        cls, code: str, message: str, *, hint: str | None = None, retry_after_s: float | None = None
    ) -> Error:
        """The exception that a wire body stands for. An unknown code gives the base class."""
        return cls._by_code.get(code, Error)(message, hint=hint, retry_after_s=retry_after_s)


class InvalidRequest(Error):
    """The request makes no sense as it stands. Nothing was run."""

    code, status = "invalid_request", 400


class InvalidSeed(InvalidRequest):
    """A seed is 64 hex characters, an int in [0, 2**256), or 32 bytes."""

    code = "invalid_seed"


class InvalidSpec(InvalidRequest):
    """A reward spec that cannot be graded."""

    code = "invalid_spec"


class BadPath(InvalidRequest):
    """A path that is not absolute, is empty, or holds a NUL."""

    code = "bad_path"


class BadEnvDir(InvalidRequest):
    """A directory that holds no env.py, or cannot be sent."""

    code = "bad_env_dir"


class BadImage(InvalidRequest):
    """An image that is not there, is broken, is for another machine, or would lead out of its own root."""

    code = "bad_image"


class BakeFailed(InvalidRequest):
    """A setup command or a ready condition of a template failed; the message and the template's log say how."""

    code = "bake_failed"


class WrongActionCount(InvalidRequest):
    """Not one action for each worker. Nothing was run."""

    code = "wrong_action_count"


class BadAction(InvalidRequest):
    """An action that is neither JSON nor bytes nor a numpy array of numbers, or is too large. Nothing was run."""

    code = "bad_action"


class NotReset(InvalidRequest):
    """A step before the first reset. Nothing was run."""

    code = "not_reset"


class EpisodeDone(InvalidRequest):
    """A step on an episode that has ended. Nothing was run."""

    code = "episode_done"


class PoolBusy(InvalidRequest):
    """A batch is still under way in these workers. Nothing was run."""

    code, status = "pool_busy", 409


class Unauthorized(Error):
    """No key, or one that is unknown, revoked or expired."""

    code, status = "unauthorized", 401


class Forbidden(Error):
    """The key is good, but not for this."""

    code, status = "forbidden", 403


class TierLimit(Forbidden):
    """More than the tenant's tier ever allows. Nothing was run, and waiting is no use."""

    code = "tier_limit"


class NotFound(Error):
    """No such thing, or not this tenant's."""

    code, status = "not_found", 404


class UnknownTemplate(NotFound):
    """No template of that name."""

    code = "unknown_template"


class FileMissing(NotFound):
    """No such file in the sandbox."""

    code = "file_not_found"


class UnknownRollout(NotFound):
    """The ledger holds no such rollout."""

    code = "unknown_rollout"


class NotAFile(Error):
    """A directory, device or pipe where a regular file was asked for."""

    code, status = "not_a_file", 409


class FileDenied(Error):
    """The sandbox's own permissions refuse."""

    code, status = "file_denied", 403


class SandboxGone(Error):
    """The sandbox ended: closed, expired, killed, or its node restarted."""

    code, status = "session_gone", 410


class LeaseGone(SandboxGone):
    """The lease that a request names is not held here. Nothing was run: take another and ask again."""

    code, retryable = "lease_gone", True


class PoolClosed(SandboxGone):
    """The pool was closed, or its lease ended."""

    code = "pool_closed"


class TooLarge(Error):
    """More bytes than the limit allows."""

    code, status = "too_large", 413


class NoSpace(Error):
    """The disk is full: the sandbox's quota, or the node's."""

    code, status = "no_space", 507


class AtCapacity(Error):
    """No slot is free right now. Nothing was run. Safe to retry."""

    code, status, retryable = "at_capacity", 429, True


class RateLimited(AtCapacity):
    """Too many requests for this key. Safe to retry after the time named."""

    code = "rate_limited"


class QuotaExceeded(AtCapacity):
    """The tenant's tier allows no more at once. Nothing was run. Safe to retry when something has ended."""

    code = "quota_exceeded"


class SandboxSuspended(Error):
    """The sandbox is suspended: resume it first."""

    code, status = "sandbox_suspended", 409


class SandboxBusy(Error):
    """Something runs in the sandbox that has to end first."""

    code, status, retryable = "sandbox_busy", 409, True


class TemplateInUse(Error):
    """Sandboxes of that template live."""

    code, status = "template_in_use", 409


class KeyReused(Error):
    """An Idempotency-Key that came with another request before. Nothing was run."""

    code, status = "key_reused", 409


class RangeUnsatisfiable(Error):
    """A file has nothing at the range that was asked for."""

    code, status = "range_unsatisfiable", 416


class PortClosed(Error):
    """Nothing in the sandbox listens on that port."""

    code, status, retryable = "port_closed", 502, True


class NotSupported(Error):
    """This node cannot do that, and does nothing else instead."""

    code, status = "not_supported", 501


class Draining(Error):
    """The node is shutting down and takes no new work. Nothing was run."""

    code, status, retryable = "draining", 503, True


class IsolationUnavailable(Error):
    """This host cannot isolate at the level asked for. Nothing is ever run with less, silently."""

    code, status = "isolation_unavailable", 503


class TemplateFailed(Error):
    """The template could not be made, or died."""

    code, status = "template_failed", 500


class SandboxFailed(Error):
    """The sandbox could not be made."""

    code, status = "sandbox_failed", 500


class GradingFailed(Error):
    """The judge failed. No reward was formed."""

    code, status = "grading_failed", 500


class EnvFailed(Error):
    """Asked for the task of a worker that has none; the message says why."""

    code, status = "env_failed", 500


class BoltzUnavailable(Error):
    """This node has no Boltz slots. There is no fallback to the other mode."""

    code, status = "boltz_unavailable", 503


class SnapshotUnsupported(Error):
    """What runs in the sandbox cannot be carried over; the message names it."""

    code, status = "snapshot_unsupported", 409


class NodeUnavailable(Error):
    """No node answers."""

    code, status, retryable = "node_unavailable", 503, True


class DeadlineExceeded(Error):
    """The node did not answer in time."""

    code, status, retryable = "deadline_exceeded", 504, True


class ProtocolError(Error):
    """The other end answered something that is not our protocol."""

    code, status = "protocol_error", 502
