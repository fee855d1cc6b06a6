import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { ObservedReplica, ReplicaSpec, ReplicaState } from "../replica-driver.js";
import { serveArgs } from "../serve-args.js";
import type { Launcher } from "./launcher.js";
import type { ReplicaLog } from "./replica-log.js";

export interface LocalReplicaOptions {
  readonly id: string;
  readonly spec: ReplicaSpec;
  readonly launcher: Launcher;
  /** Empty where it is not pinned. */
  readonly cores: readonly number[];
  readonly log: ReplicaLog;
  readonly onChange: () => void;
}

/** Beyond the graceful shutdown: `octavo serve` closes connections and frees the model. */
const closingMs = 2000;

/** One `octavo serve` as a child process, from its start to its end. */
export class LocalReplica implements ObservedReplica {
  readonly id: string;
  readonly version: string;
  readonly startedMs = performance.now();
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  readonly #options: LocalReplicaOptions;
  #url: string | undefined;
  #isStopping = false;
  #hasEnded = false;
  #lastLine = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LocalReplicaOptions) {
    const { id, spec, launcher, cores, log, onChange } = options;
    this.id = id;
    this.version = spec.version;
    this.#options = options;
    const own = ["--host", "127.0.0.1", "--port", "0", "--replica-id", id];
    this.#child = launcher.launch([...serveArgs(spec, cores.length), ...own], cores);
    for (const stream of [this.#child.stdout, this.#child.stderr])
      if (stream !== null)
        createInterface({ input: stream }).on("line", (line) => {
          if (line.trim() === "") return;
          log.add(id, line);
          this.#lastLine = line.trim();
          const [url] = /http:\/\/[\w.:[\]]+:\d+/.exec(line) ?? [];
          if (this.#url !== undefined || url === undefined) return;
          this.#url = url;
          onChange();
        });
    this.ended = new Promise((resolve) => {
      const end = (): void => {
        this.#hasEnded = true;
        clearTimeout(this.#timer);
        resolve();
        onChange();
      };
      this.#child.once("exit", end);
      // the executable is not there
      this.#child.once("error", (error) => {
        this.#lastLine = error.message;
        end();
      });
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get url(): string | undefined {
    return this.#url;
  }

  get state(): ReplicaState {
    return this.#isStopping ? "stopping" : this.#url === undefined ? "starting" : "running";
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What it said last, and how it ended. */
  get ending(): string {
    const { exitCode, signalCode } = this.#child;
    const how = signalCode ?? `exit code ${exitCode ?? "none"}`;
    return this.#lastLine === "" ? how : `${how}: ${this.#lastLine.slice(0, 300)}`;
  }

  /** Running requests may end within the deployment's time. Listeners are told before the process is. */
  stop(how: "drain" | "kill"): void {
    if (this.#hasEnded) return;
    const isFirst = !this.#isStopping;
    this.#isStopping = true;
    if (isFirst) this.#options.onChange();
    if (how === "kill") this.#child.kill("SIGKILL");
    else if (isFirst) {
      this.#child.kill("SIGTERM");
      const graceMs = this.#options.spec.deployment.graceful_shutdown_timeout_s * 1000;
      this.#timer = setTimeout(() => this.#child.kill("SIGKILL"), graceMs + closingMs);
    }
  }
}
