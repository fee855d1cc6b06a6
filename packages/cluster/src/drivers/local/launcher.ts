import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

export interface LauncherOptions {
  /** What stands before `serve`: Node and octavo's script. */
  readonly command: readonly string[];
  /** What starts a process that has read its modules and waits on standard input for a line: its arguments, as a JSON array. */
  readonly standby?: readonly string[] | undefined;
  /** What replicas need beside this process's. */
  readonly environment: Readonly<Record<string, string>>;
}

/** A standby process that ended by itself is not started again sooner. */
const retryMs = 30_000;

/**
 * Starts processes of replicas. Reading its modules is most of what a small replica's start takes, so that one process is kept which
 * has done so: the next replica is it.
 */
export class Launcher {
  readonly #options: LauncherOptions;
  #waiting: ChildProcess | undefined;
  #retryAtMs = 0;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  /** A replica's process, with what `command` is given; pinned to `cores` unless there are none. */
  launch(args: readonly string[], cores: readonly number[]): ChildProcess {
    const child = this.#waiting;
    this.#waiting = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null)
      return this.#spawn([...pinned(cores), ...this.#options.command, ...args], "ignore");
    child.removeAllListeners();
    void pinNow(child, cores).finally(() => child.stdin?.end(`${JSON.stringify(args)}\n`));
    return child;
  }

  /** Has a process wait for the next launch; to be called when nothing else starts. */
  prepare(): void {
    const { standby } = this.#options;
    if (standby === undefined || this.#waiting !== undefined || performance.now() < this.#retryAtMs) return;
    const child = this.#spawn(standby, "pipe");
    // the process may go while its line is written
    child.stdin?.on("error", () => undefined);
    const end = (): void => {
      this.#retryAtMs = performance.now() + retryMs;
      if (this.#waiting === child) this.#waiting = undefined;
    };
    child.once("exit", end);
    child.once("error", end);
    this.#waiting = child;
  }

  /** Of the process that waits, for tests. */
  get waitingPid(): number | undefined {
    return this.#waiting?.pid;
  }

  async close(): Promise<void> {
    const child = this.#waiting;
    this.#waiting = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  /** It ends when this process dies without having said so. */
  #spawn(command: readonly string[], stdin: "ignore" | "pipe"): ChildProcess {
    const [file = "", ...args] = [
      ...(isInstalled("setpriv") ? ["setpriv", "--pdeathsig", "TERM"] : []),
      ...command,
    ];
    const env = { ...process.env, ...this.#options.environment };
    return spawn(file, args, { stdio: [stdin, "pipe", "pipe"], env });
  }
}

function pinned(cores: readonly number[]): readonly string[] {
  return cores.length > 0 && isInstalled("taskset") ? ["taskset", "--cpu-list", cores.join(",")] : [];
}

/** All threads that a process has; those that they start follow them. */
async function pinNow({ pid }: ChildProcess, cores: readonly number[]): Promise<void> {
  const [file, ...args] = pinned(cores);
  if (file === undefined || pid === undefined) return;
  // a process that has gone meanwhile is seen by who launched it
  await promisify(execFile)(file, ["--all-tasks", "--pid", ...args, String(pid)]).catch(() => undefined);
}

const found = new Map<string, boolean>();

export function isInstalled(tool: string): boolean {
  let isThere = found.get(tool);
  if (isThere === undefined) {
    isThere = (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, tool)));
    found.set(tool, isThere);
  }
  return isThere;
}
