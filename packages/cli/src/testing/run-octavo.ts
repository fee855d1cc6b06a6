import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The command's script. */
export const octavoMain = fileURLToPath(new URL("../main.js", import.meta.url));

export interface RunOctavoOptions {
  readonly cwd?: string;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Piped into it; nothing without it. */
  readonly input?: string;
}

export interface EndedOctavo {
  /** Null if a signal ended it. */
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface RunningOctavo {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** Resolves once it has ended and its output was read. */
  readonly ended: Promise<EndedOctavo>;
}

/** `octavo` in a process of its own. */
export function startOctavo(args: readonly string[], options: RunOctavoOptions = {}): RunningOctavo {
  const child = spawn(process.execPath, [octavoMain, ...args], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  child.stdin.on("error", () => undefined).end(options.input ?? "");
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, out, err }));
  return { child, ended };
}

export function runOctavo(args: readonly string[], options?: RunOctavoOptions): Promise<EndedOctavo> {
  return startOctavo(args, options).ended;
}

/** `octavo serve` on one thread and a free port; resolves once it prints its address. */
export async function serveOctavo(
  ...flags: readonly string[]
): Promise<{ readonly url: string; stop(): Promise<EndedOctavo> }> {
  const { child, ended } = startOctavo(["serve", "--port", "0", "--threads", "1", ...flags]);
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (text: string) => {
      said += text;
      const found = /http:\/\/[\d.]+:\d+/.exec(said);
      if (found !== null) resolve(found[0]);
    });
    void ended.then(({ code, err }) => reject(new TypeError(`octavo serve ended with ${code}: ${err}`)));
  });
  return {
    url,
    stop() {
      child.kill("SIGTERM");
      return ended;
    },
  };
}
