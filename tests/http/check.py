# SPDX-License-Identifier: Apache-2.0
"""The shape that every answer of the server must have, whatever the test is about."""
import base64
import datetime
import gzip

FAULTS = {"timeout", "oom", "escape_blocked", "killed", "startup_failed", "output_limit",
          "disk_full", "cancelled", "lost"}
PROBLEM_MEMBERS = {"type": str, "title": str, "status": int, "detail": str, "code": str,
                   "requestId": str, "retryable": bool, "remediation": str, "errors": list}
RESULT_MEMBERS = ("id sessionId kernelId kind state success exitCode signal stdout stderr truncated "
                  "truncatedStreams fault results resultsTruncated files filesTruncated fetched "
                  "usage limits "
                  "durationMs startedAt finishedAt").split()
USAGE_MEMBERS = "wallMs queueMs startMs cpuUserMs cpuSystemMs peakMemoryBytes peakPids".split()
LIMITS = {"timeoutS", "memoryMb", "cpus", "pids", "diskMb", "maxOutputBytes", "enforced"}
SOURCES = {"cold", "spare", "template", "kernel"}


def expect(condition, what, *context):
    if not condition:
        raise AssertionError(f"{what}: {context}")


def problem(value, status):
    """A problem body (RFC 9457) with the members that callers rely on."""
    for name, kind in PROBLEM_MEMBERS.items():
        expect(type(value.get(name)) is kind, f"problem member {name}", value)
    expect(value["status"] == status, "the status differs from the body's", status, value)
    expect(value["type"] == "urn:kernd:error:" + value["code"], "problem type", value)
    expect(value["remediation"] and value["detail"], "no help in the problem", value)
    expect({"instance", "retryAfterS"} <= set(value), "problem members", value)
    for entry in value["errors"]:
        expect(entry["pointer"] == "" or entry["pointer"].startswith("/"), "pointer", value)
        expect(entry["code"] and entry["message"], "field fault", value)


def reply(answer, method="GET"):
    """Checks headers and, for JSON, the body of any answer of the server; returns it."""
    expect(answer.header("X-Request-Id"), "no request id", answer)
    expect(answer.header("Date") is not None, "no date", answer)
    for name, value in answer.headers:
        expect("\r" not in value and "\n" not in value, "line break in a header", answer)
        expect(not name.lower().startswith("access-control-"), "a CORS header", answer)
    expect(answer.header("X-Content-Type-Options") == "nosniff", "no nosniff", answer)
    if method == "HEAD":
        expect(answer.body == b"", "HEAD with a body", answer)
        return answer
    if answer.status == 304:
        expect(answer.body == b"", "304 with a body", answer)
        return answer
    if answer.header("Content-Encoding") is not None:
        expect(answer.header("Content-Encoding") == "gzip", "coding", answer)
        gzip.decompress(answer.body)
        return answer
    if answer.status >= 400:
        expect(answer.media_type == "application/problem+json", "media type of a problem", answer)
        problem(answer.json, answer.status)
        expect(answer.json["requestId"] == answer.header("X-Request-Id"), "request id", answer)
    elif answer.media_type == "application/json":
        expect(answer.json is not None, "an empty JSON answer", answer)
    return answer


def _number_or_null(value, name, context):
    expect(value is None or type(value) in (int, float) and value >= 0, name, context)


SESSION_MEMBERS = ("id state labels createdAt updatedAt lastUsedAt expiresAt ownedWorkspace "
                   "workspaceBytes workspaceFiles runningExecutions executions kernels options").split()
SESSION_OPTIONS = ("engine image profiles egressAllow securityProfile apparmor capDrop workspace setup snapshotId environment preload timeoutS memoryMb cpus pids diskMb maxOutputBytes "
                   "requireLimits network isolation mounts envNames depsReadonly trackFiles idleTimeoutS ttlS "
                   "prewarm").split()


def session(value):
    """A session as it is told; returns it."""
    expect(list(value) == SESSION_MEMBERS, "session members", value)
    expect(list(value["options"]) == SESSION_OPTIONS, "session options", value)
    expect(len(value["executions"]) == value["runningExecutions"], "executions", value)
    for one in value["executions"]:
        expect(list(one) == ["id", "kind", "state", "startedAt"], "an execution", value)
        expect(one["state"] in ("queued", "running"), "an execution's state", value)
    expect(value["state"] in ("creating", "ready", "deleting", "expired"), "state", value)
    for name in ("createdAt", "updatedAt", "lastUsedAt", "expiresAt"):
        if value[name] is not None:
            datetime.datetime.fromisoformat(value[name][:-1])
    return value


def _bundles(results):
    for bundle in results:
        expect(set(bundle) == {"data", "isMain", "truncated"}, "result members", bundle)
        expect(type(bundle["isMain"]) is bool and type(bundle["truncated"]) is bool, "flags",
               bundle)
        expect(bundle["data"], "an empty result", bundle)
        for mime, data in bundle["data"].items():
            expect("/" in mime and mime == mime.lower(), "mime type", bundle)
            if mime.split("/")[0] in ("image", "audio", "video") and mime != "image/svg+xml":
                base64.b64decode(data, validate=True)
            elif mime != "application/json" and not mime.endswith("+json"):
                expect(type(data) is str, "data of a text type", bundle)


def result(value):
    """Checks the result of a run, runCode or cell; returns it."""
    expect(set(RESULT_MEMBERS) <= set(value), "members missing",
           set(RESULT_MEMBERS) - set(value), value)
    expect(value["id"] and value["state"] == "done", "id and state", value)
    expect(type(value["stdout"]) is str and type(value["stderr"]) is str, "output", value)
    expect(value["exitCode"] is None or 0 <= value["exitCode"] <= 255, "exit code", value)
    expect(value["signal"] is None or not value["signal"].startswith("SIG"), "signal", value)
    expect(value["success"] == (value["exitCode"] == 0 and value["fault"] is None), "success",
           value)
    expect(set(value["truncatedStreams"]) <= {"stdout", "stderr"}, "truncated streams", value)
    expect(value["truncated"] == bool(value["truncatedStreams"]), "truncated", value)
    if value["fault"] is not None:
        expect(value["fault"]["type"] in FAULTS, "fault type", value)
        expect(value["fault"]["message"], "fault message", value)
        expect("evidence" in value["fault"], "fault evidence", value)
    for name in USAGE_MEMBERS:
        _number_or_null(value["usage"][name], name, value["usage"])
    expect(value["usage"].get("source") in SOURCES, "usage source", value["usage"])
    for entry in value["files"]:
        expect(entry["change"] in ("created", "modified", "deleted"), "change", entry)
    expect(set(value["limits"]) == LIMITS, "limits", value)
    _bundles(value["results"])
    for name in ("startedAt", "finishedAt"):
        if value[name] is not None:
            expect(value[name].endswith("Z"), name, value)
            datetime.datetime.fromisoformat(value[name][:-1])
    _number_or_null(value["durationMs"], "durationMs", value)
    return value
