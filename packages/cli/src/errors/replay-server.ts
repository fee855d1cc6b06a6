import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { endWithProcess, openAiTarget, type Target } from "@octavo/evals";
import type { ConfigPatch } from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { readConfigFile } from "../options/config-file.js";
import { serveRows } from "../options/serve-options.js";
import { serveFlags, settingsOfArgs } from "./feed-files.js";

const octavoScript = fileURLToPath(new URL("../main.js", import.meta.url));

/** What a replay must not touch of the server that it stands in for: its address, keys, logs, traces and neighbours. */
const ofDeployment =
  /^(?:host|port|uds|root-path|ssl-.*|api-key|replica-id|otlp-.*|trace-.*|metering-log|alert-.*|crash-journal|(?:uvicorn-)?log-.*|config|shutdown-timeout|drain-timeout)$/;

/**
 * Arguments of `octavo serve` as a file of flags has them, with a patch over them, for a replay on this machine.
 * @throws OctavoError `invalid_option` for a setting that `octavo serve` does not have or would refuse
 */
export async function replayArguments(
  config: string | undefined,
  set: ConfigPatch["set"] = {},
): Promise<readonly string[]> {
  const patched = new Set(Object.keys(set).map(keyOfSetting));
  const file = config === undefined ? [] : await readConfigFile(serveRows, config);
  const kept = file.filter((arg) => {
    const name = nameOf(arg);
    const key = serveFlags.get(name);
    return !ofDeployment.test(name) && (key === undefined || !patched.has(key));
  });
  const args = [...kept, ...Object.entries(set).flatMap(([name, value]) => argumentOf(name, value))];
  await settingsOfArgs(args);
  return args;
}

/** Throws `invalid_option` for a setting that `octavo serve` does not have. */
function keyOfSetting(name: string): string {
  const key = serveFlags.get(name);
  if (key !== undefined && !ofDeployment.test(name)) return key;
  throw new OctavoError(
    "invalid_option",
    key === undefined
      ? `the patch sets ${name}, which octavo serve does not have`
      : `the patch sets ${name}, which a replay cannot show`,
    { param: name },
  );
}

function nameOf(argument: string): string {
  const [name = ""] = argument.slice(2).split("=");
  return serveFlags.has(name) ? name : name.replace(/^no-/, "");
}

function argumentOf(name: string, value: ConfigPatch["set"][string]): readonly string[] {
  if (value === null) return [];
  if (typeof value === "boolean") return [value ? `--${name}` : `--no-${name}`];
  return [`--${name}=${value}`];
}

/** `octavo serve` in a process of its own, until it is disposed. */
export class ReplayServer implements AsyncDisposable {
  readonly target: Target;
  readonly #child: ChildProcess;

  private constructor(target: Target, child: ChildProcess) {
    this.target = target;
    this.#child = child;
  }

  /** Answers once this resolves. Throws `target_unreachable`, with what it said, where it ends instead. */
  static async start(args: readonly string[]): Promise<ReplayServer> {
    const own = ["--host", "127.0.0.1", "--port", "0", "--log-level", "error", "--no-detectors"];
    const child = spawn(process.execPath, [octavoScript, "serve", ...args, ...own], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    endWithProcess(child);
    const url = await new Promise<string>((resolve, reject) => {
      let said = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        said = (said + text).slice(-4000);
        const found = /http:\/\/[\d.]+:\d+/.exec(said);
        if (found !== null) resolve(found[0]);
      });
      child.once("close", (code) =>
        reject(
          new OctavoError(
            "target_unreachable",
            `octavo serve ended with ${code} before it served: ${said.trim()}`,
          ),
        ),
      );
    });
    const target = openAiTarget({ name: "replay", baseUrl: `${url}/v1` });
    return new ReplayServer(target, child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await ended;
  }
}
