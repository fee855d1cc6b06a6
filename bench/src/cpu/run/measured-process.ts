import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { OctavoError } from "@octavo/protocol/errors";

const POLL_MS = 20;
const KEPT_ERROR_CHARACTERS = 2000;

export interface ProcessSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProcessRecord {
  readonly lines: readonly string[];
  /** From before the process was made to its end. */
  readonly wallMs: number;
  /** From before the process was made to the first line that `isMark` accepts. */
  readonly markMs: number | undefined;
  /** Most memory resident at a time, pages of mapped files included (VmHWM); undefined where there is no /proc. */
  readonly peakBytes: number | undefined;
  /** Most of it that belongs to no file (RssAnon). */
  readonly anonymousBytes: number | undefined;
}

/** Node reads them at every start, which takes longer than all the rest of its own start: the machine's concern, no contender's. */
const withoutExtraCertificates = { NODE_EXTRA_CA_CERTS: undefined };

/** Runs a process to its end, watching its memory from outside, the same way for every contender. */
export async function runMeasured(
  spec: ProcessSpec,
  isMark: (line: string) => boolean = () => false,
): Promise<ProcessRecord> {
  const startMs = performance.now();
  const child = spawn(spec.command, spec.args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...withoutExtraCertificates, ...spec.env },
  });
  const memory = watchMemory(child.pid);
  const lines: string[] = [];
  let rest = "";
  let errors = "";
  let markMs: number | undefined;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const nowMs = performance.now();
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) {
      if (markMs === undefined && isMark(line)) markMs = nowMs - startMs;
      lines.push(line);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-KEPT_ERROR_CHARACTERS);
  });
  const code = await new Promise<number | string>((resolve, reject) => {
    child.on("error", (cause) => {
      memory.stop();
      reject(
        new OctavoError("not_found", `${spec.command} does not start: ${cause.message}`, {
          cause,
        }),
      );
    });
    child.on("close", (exit, signal) => resolve(exit ?? signal ?? "an unknown end"));
  });
  const wallMs = performance.now() - startMs;
  if (rest !== "") lines.push(rest);
  const seen = memory.stop();
  if (code !== 0) {
    throw new OctavoError(
      "engine_failed",
      `${[spec.command, ...spec.args].join(" ")} ended with ${code}:\n${errors.trim()}`,
    );
  }
  return { lines, wallMs, markMs, ...seen };
}

/** Polls /proc: the high-water mark needs no luck with the moment, the anonymous part is the highest seen. */
export function watchMemory(pid: number | undefined): {
  stop(): { readonly peakBytes: number | undefined; readonly anonymousBytes: number | undefined };
} {
  let peakBytes: number | undefined;
  let anonymousBytes: number | undefined;
  const look = (): void => {
    const status = pid === undefined ? undefined : readStatus(pid);
    if (status === undefined) return;
    peakBytes = largest(peakBytes, kilobytes(status, "VmHWM"));
    anonymousBytes = largest(anonymousBytes, kilobytes(status, "RssAnon"));
  };
  const timer = setInterval(look, POLL_MS);
  return {
    stop() {
      clearInterval(timer);
      return { peakBytes, anonymousBytes };
    },
  };
}

function largest(before: number | undefined, now: number | undefined): number | undefined {
  return now === undefined ? before : Math.max(before ?? 0, now);
}

function readStatus(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return undefined;
  }
}

function kilobytes(status: string, field: string): number | undefined {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1];
  return found === undefined ? undefined : Number(found) * 1024;
}
