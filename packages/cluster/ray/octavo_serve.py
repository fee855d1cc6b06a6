"""Octavo on Ray Serve: each replica actor runs one `octavo serve` on its node.

Two applications, by import path:

- `octavo_serve:app` runs replicas and passes requests through to them, streams included.
- `octavo_serve:directory` knows where replicas listen and how they are, for gateways that call them directly. `octavo cluster` with
  `driver: { kind: ray }` deploys both and places, scales and updates them over Serve's REST API.

Needs ray[serve] and what it brings (aiohttp, starlette), and on each node the command that starts Octavo.
"""

import asyncio
import ctypes
import os
import re
import signal
import sys
import time
from collections import deque

import aiohttp
import ray
from ray import serve
from ray.util.metrics import Gauge
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

DIRECTORY = "octavo-directory"
REPORT_S = 0.5
# a replica that says nothing for so long is forgotten
FORGET_S = 60
# serving records that are reported: Octavo's names, and those that Ray exports
GAUGES = {
    "vllm:num_requests_running": ("octavo_requests_running", "Requests in execution."),
    "vllm:num_requests_waiting": ("octavo_requests_waiting", "Requests that wait in the replica."),
    "vllm:kv_cache_usage_perc": ("octavo_kv_cache_usage", "Share of the KV cache in use."),
}
HOP_BY_HOP = {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length"}


@serve.deployment(name="Directory", num_replicas=1, max_ongoing_requests=1000, ray_actor_options={"num_cpus": 0})
class Directory:
    """What replicas reported last, by their ids. It holds nothing that they do not say again within a second."""

    def __init__(self):
        self._reports = {}
        self._rejected = {}

    def report(self, replica: str, report: dict) -> bool:
        """Whether the replica is to go on; False once it was rejected."""
        self._reports[replica] = (time.monotonic(), report)
        self._forget(self._reports, lambda value: value[0])
        self._forget(self._rejected, lambda value: value)
        return replica not in self._rejected

    @staticmethod
    def _forget(known: dict, seen) -> None:
        oldest = time.monotonic() - FORGET_S
        for one in [one for one, value in known.items() if seen(value) < oldest]:
            del known[one]

    async def __call__(self, request: Request) -> Response:
        if request.method == "POST":
            for replica in (await request.json())["rejected"]:
                self._rejected[replica] = time.monotonic()
        now = time.monotonic()
        return JSONResponse(
            {one: {**report, "age_s": round(now - seen, 3)} for one, (seen, report) in self._reports.items()}
        )


@serve.deployment(name="Octavo")
class Octavo:
    """One `octavo serve`, from its start to its end."""

    async def __init__(self, options: dict):
        self._options = options
        self._id = f"{options['name']}-{serve.get_replica_context().replica_id.unique_id}"
        self._lines = deque(maxlen=1)
        self._was_healthy = False
        self._is_healthy = False
        self._is_stopping = False
        self._records = {}
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False)
        self._gauges = {theirs: Gauge(name, description=text) for theirs, (name, text) in GAUGES.items()}
        # it ends with this actor, whatever that dies of
        environment = {**os.environ}
        if options.get("replica_key"):
            environment["OCTAVO_REPLICA_KEY"] = options["replica_key"]
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        listens_at = ["--host", ray.util.get_node_ip_address(), "--port", "0", "--replica-id", self._id]
        self._process = await asyncio.create_subprocess_exec(
            *options["command"],
            *listens_at,
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            preexec_fn=(lambda: libc.prctl(1, signal.SIGTERM)) if libc else None,
        )
        self._url = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.create_task(self._read_output())]
        timeout_s = options.get("startup_timeout_s", 600)
        try:
            self._address = await asyncio.wait_for(self._url, timeout_s)
        except asyncio.TimeoutError:
            self._process.kill()
            raise RuntimeError(f"{self._id} did not listen within {timeout_s} s: {self._last_line}") from None
        self._tasks.append(asyncio.create_task(self._report_forever()))

    @property
    def _last_line(self) -> str:
        return self._lines[0] if self._lines else "it said nothing"

    async def _read_output(self):
        while line := await _read_line(self._process.stdout):
            text = line.decode("utf-8", "replace").strip()
            if not text:
                continue
            print(f"[{self._id}] {text}", flush=True)
            self._lines.append(text[:300])
            found = re.search(r"http://[\w.:\[\]]+:\d+", text)
            if found and not self._url.done():
                self._url.set_result(found.group())
        code = await self._process.wait()
        ending = f"{self._id} ended with {code}: {self._last_line}"
        if not self._url.done():
            self._url.set_exception(RuntimeError(ending))
        elif not self._is_stopping:
            # Ray replaces an actor whose process is gone at once
            print(ending, flush=True)
            os._exit(1)

    async def _report_forever(self):
        directory = None
        while True:
            started = time.monotonic()
            is_healthy = await self._look()
            report = {"url": self._address, "healthy": is_healthy, **self._records}
            if self._options.get("directory"):
                try:
                    directory = directory or serve.get_app_handle(DIRECTORY)
                    if not await asyncio.wait_for(directory.report.remote(self._id, report), 5):
                        print(f"{self._id} was rejected", flush=True)
                        self._process.kill()
                        os._exit(1)
                except Exception:
                    # not there yet, or on its way to another node; it is told again
                    directory = None
            await asyncio.sleep(max(0.05, REPORT_S - (time.monotonic() - started)))

    async def _look(self) -> bool:
        """Its health and its serving records, as it says them itself."""
        timeout = aiohttp.ClientTimeout(total=self._options.get("health_check_timeout_s", 30))
        try:
            async with self._session.get(f"{self._address}/health", timeout=timeout) as answer:
                is_healthy = answer.status == 200
            async with self._session.get(f"{self._address}/metrics", timeout=timeout) as answer:
                text = await answer.text() if answer.status == 200 else ""
        except (aiohttp.ClientError, asyncio.TimeoutError):
            is_healthy, text = False, ""
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            name = name.partition("{")[0]
            if name in GAUGES:
                self._records[GAUGES[name][0]] = float(value.rsplit(" ", 1)[-1])
                self._gauges[name].set(self._records[GAUGES[name][0]])
        self._was_healthy = self._was_healthy or is_healthy
        self._is_healthy = is_healthy
        return is_healthy

    async def check_health(self):
        """Ray replaces a replica that was healthy and no longer is."""
        if self._was_healthy and not self._is_healthy:
            raise RuntimeError(f"{self._id} does not answer /health: {self._last_line}")

    async def __call__(self, request: Request) -> Response:
        path = request.url.path.removeprefix(request.scope.get("root_path", ""))
        query = f"?{request.url.query}" if request.url.query else ""
        headers = {name: value for name, value in request.headers.items() if name not in HOP_BY_HOP}
        try:
            answer = await self._session.request(
                request.method,
                f"{self._address}{path}{query}",
                headers=headers,
                data=await request.body(),
                allow_redirects=False,
            )
        except aiohttp.ClientError as error:
            return JSONResponse({"error": {"message": f"{self._id}: {error}", "type": "server_error"}}, 502)

        async def body():
            # leaving early closes the connection, which ends the request in the replica
            async with answer:
                async for chunk in answer.content.iter_any():
                    yield chunk

        kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
        return StreamingResponse(body(), answer.status, kept)

    async def __del__(self):
        """Asked to stop: what runs in it may end within its drain timeout; Ray's own timeout is longer."""
        self._is_stopping = True
        if self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()
        for task in self._tasks:
            task.cancel()
        await self._session.close()


async def _read_line(stream: asyncio.StreamReader) -> bytes:
    """A line, or of one that is longer than the buffer what is there."""
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await stream.read(error.consumed)


def app(options: dict) -> serve.Application:
    """`command`: what starts it, such as ["octavo", "serve", "MODEL"]; `name`: of its replicas' ids."""
    return Octavo.bind({"name": "octavo", **options})


def directory(_options: dict) -> serve.Application:
    return Directory.bind()
