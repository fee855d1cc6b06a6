import { createHash } from "node:crypto";
import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { arch, cpus, homedir } from "node:os";
import { join } from "node:path";
import { makeFolder } from "@octavo/protocol/make-folder";
import { loadedAddonPath } from "./load-addon.js";
import { kernelKinds, kernelPaths, type ProbedTimes } from "./kernel-paths.js";

/**
 * What was measured on this processor with this build, kept in `octavo` of the user's cache folder; measured now where there is nothing.
 * Without a folder to write to, every process measures.
 */
export function cachedTimes(
  env: NodeJS.ProcessEnv,
  measure: () => ProbedTimes | undefined,
): ProbedTimes | undefined {
  const folder = join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "octavo");
  const file = join(folder, `kernel-times-${machineKey()}.json`);
  try {
    const known: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (isTimes(known)) return known;
  } catch {
    // Nothing there, or nothing that can be read: measured again.
  }
  const times = measure();
  if (times === undefined) return undefined;
  try {
    makeFolder(folder);
    const fresh = `${file}.${process.pid}`;
    writeFileSync(fresh, JSON.stringify(times));
    renameSync(fresh, file);
  } catch {
    // A folder that cannot be written costs the next start some milliseconds.
  }
  return times;
}

/** Identifies the processor and the built kernels. */
function machineKey(): string {
  const { size, mtimeMs } = statSync(loadedAddonPath());
  return createHash("sha256")
    .update(`${processorName()}\n${arch()}\n${size} ${mtimeMs}`)
    .digest("hex")
    .slice(0, 16);
}

/** Virtual machines give one name to several models: on Linux, their numbers and features count too. */
function processorName(): string {
  const told =
    /^(?:vendor_id|cpu family|model|model name|stepping|flags|CPU implementer|CPU part|CPU variant|Features)\s*:/;
  try {
    const [first = ""] = readFileSync("/proc/cpuinfo", "utf8").split("\n\n");
    return first
      .split("\n")
      .filter((line) => told.test(line))
      .join("\n");
  } catch {
    return cpus()[0]?.model ?? "";
  }
}

function isTimes(value: unknown): value is ProbedTimes {
  if (typeof value !== "object" || value === null) return false;
  return kernelKinds.every((kind) => {
    const times: unknown = (value as Readonly<Record<string, unknown>>)[kind];
    return Array.isArray(times) && times.length > 0 && times.every(isProbedPath);
  });
}

function isProbedPath(value: unknown): boolean {
  if (!Array.isArray(value)) return false;
  const [path, seconds] = value as unknown[];
  return kernelPaths.some((name) => name === path) && typeof seconds === "number" && seconds >= 0;
}
