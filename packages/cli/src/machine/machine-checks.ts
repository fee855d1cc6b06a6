import { accessSync, constants, existsSync, readFileSync, statfsSync } from "node:fs";
import { arch, cpus, platform, tmpdir, totalmem } from "node:os";
import { dirname } from "node:path";
import { readHubSettings } from "@octavo/artifacts/hub/hub-settings";
import { availableMemoryBytes, createCpuBackend, defaultThreadCount, processorCount } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { embeddedModelFolder } from "@octavo/artifacts/hub/local-model";
import { openFilesWarning } from "../options/check-open-files.js";

export interface MachineCheck {
  readonly name: string;
  /** A warning costs speed or a feature; a failure keeps models from running. */
  readonly state: "ok" | "warning" | "failure";
  readonly found: string;
  /** One thing to do. */
  readonly fix?: string;
}

const gibibyte = 2 ** 30;
const usualRequests = 512;

export function describeCpu(): {
  name: string;
  processors: number;
  memoryBytes: number;
  freeMemoryBytes: number;
} {
  return {
    name: cpus()[0]?.model.trim() || arch(),
    processors: processorCount(),
    memoryBytes: totalmem(),
    freeMemoryBytes: availableMemoryBytes(),
  };
}

export async function machineChecks({
  online,
}: {
  readonly online: boolean;
}): Promise<readonly MachineCheck[]> {
  return [
    nodeCheck(process.versions.node),
    kernelsCheck(),
    memoryCheck(availableMemoryBytes()),
    threadsCheck(defaultThreadCount(), processorCount()),
    hugePagesCheck(),
    openFilesCheck(),
    modelCheck(),
    cacheCheck(),
    await duckdbCheck(),
    ...(online ? [await hubCheck()] : []),
  ];
}

export function nodeCheck(version: string): MachineCheck {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const found = `${version} on ${platform()}-${arch()}`;
  return major > 20 || (major === 20 && minor >= 19)
    ? { name: "node", state: "ok", found }
    : { name: "node", state: "failure", found, fix: "install Node 20.19 or newer" };
}

function kernelsCheck(): MachineCheck {
  try {
    using backend = createCpuBackend({ numThreads: 1 });
    const { instructionSet, features } = backend.info;
    const found = [instructionSet, ...features].join(" + ");
    return instructionSet === "scalar"
      ? {
          name: "kernels",
          state: "warning",
          found: "portable, slow",
          fix: "run on a processor with AVX2, or ARM with dot products",
        }
      : { name: "kernels", state: "ok", found };
  } catch (thrown) {
    return { name: "kernels", state: "failure", found: OctavoError.from(thrown).message };
  }
}

export function memoryCheck(freeBytes: number): MachineCheck {
  const found = `${formatBinaryBytes(freeBytes)} free`;
  if (freeBytes >= 2 * gibibyte) return { name: "memory", state: "ok", found };
  return {
    name: "memory",
    state: "warning",
    found,
    fix: "free memory, or raise the container's limit, for models beyond a few hundred MB",
  };
}

export function threadsCheck(threads: number, processors: number): MachineCheck {
  const found = `${threads} threads on ${processors} processors`;
  return threads === 1 && processors > 1
    ? { name: "threads", state: "warning", found, fix: "raise the container's CPU quota" }
    : { name: "threads", state: "ok", found };
}

function hugePagesCheck(): MachineCheck {
  const path = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (!existsSync(path)) return { name: "huge pages", state: "ok", found: "not asked for on this system" };
  const [, mode = "?"] = /\[(\w+)\]/.exec(readFileSync(path, "latin1")) ?? [];
  return mode === "never"
    ? { name: "huge pages", state: "warning", found: mode, fix: `echo madvise | sudo tee ${path}` }
    : { name: "huge pages", state: "ok", found: mode };
}

function openFilesCheck(): MachineCheck {
  const warning = openFilesWarning(usualRequests);
  if (warning === undefined)
    return { name: "open files", state: "ok", found: `enough for ${usualRequests} connections` };
  const [found = warning, fix] = warning.split("; ");
  return { name: "open files", state: "warning", found, ...(fix !== undefined && { fix }) };
}

function modelCheck(): MachineCheck {
  try {
    return { name: "octavo-mini", state: "ok", found: embeddedModelFolder() };
  } catch {
    return {
      name: "octavo-mini",
      state: "warning",
      found: "not installed",
      fix: "npm install @octavo/octavo-mini, or always name a model",
    };
  }
}

function cacheCheck(): MachineCheck {
  try {
    const { cacheDir } = readHubSettings(process.env);
    const folder = nearestFolder(cacheDir);
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const found = `${cacheDir}, ${formatBinaryBytes(bavail * bsize)} free`;
    return bavail * bsize < 5 * gibibyte
      ? {
          name: "model cache",
          state: "warning",
          found,
          fix: "free disk space, or set HF_HOME to another disk",
        }
      : { name: "model cache", state: "ok", found };
  } catch (thrown) {
    const { message } = OctavoError.from(thrown);
    return {
      name: "model cache",
      state: "warning",
      found: message,
      fix: "set HF_HOME to a folder that can be written",
    };
  }
}

function nearestFolder(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestFolder(dirname(path));
}

async function duckdbCheck(): Promise<MachineCheck> {
  const name = "trace queries";
  try {
    const { SpanQuery } = await import("@octavo/tracing/store");
    (await SpanQuery.open(tmpdir()))[Symbol.dispose]();
    return { name, state: "ok", found: "DuckDB" };
  } catch {
    const fix = "npm install @duckdb/node-api, for octavo traces";
    return { name, state: "warning", found: "no DuckDB", fix };
  }
}

async function hubCheck(): Promise<MachineCheck> {
  const { endpoint, token, offline } = readHubSettings(process.env);
  const who = `${endpoint}, ${token === undefined ? "no token" : "with a token"}`;
  if (offline) return { name: "hub", state: "ok", found: "HF_HUB_OFFLINE: not asked" };
  try {
    const { status } = await fetch(endpoint, { method: "HEAD", signal: AbortSignal.timeout(5000) });
    if (status < 500) return { name: "hub", state: "ok", found: who };
    return { name: "hub", state: "warning", found: `${who}: answers ${status}`, fix: "try again later" };
  } catch {
    return {
      name: "hub",
      state: "warning",
      found: `${who}: does not answer`,
      fix: "check the network or HTTPS_PROXY; models in the cache work with HF_HUB_OFFLINE=1",
    };
  }
}
