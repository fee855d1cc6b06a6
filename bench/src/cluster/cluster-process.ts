import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol";
import { request } from "undici";

const octavoMain = fileURLToPath(new URL("../../../packages/cli/dist/main.js", import.meta.url));
const key = "bench-key-of-an-operator";

/** What its clients call the model. */
export const model = "mini";

/** `octavo cluster` of one deployment, as a process. */
export class ClusterProcess implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly #path: string;
  readonly #source: string | undefined;
  #url = "";
  #said = "";

  private constructor(source: string | undefined) {
    this.#path = join(mkdtempSync(join(tmpdir(), "octavo-bench-cluster-")), "cluster.yaml");
    this.#source = source;
    this.#configure(1);
    this.process = spawn(process.execPath, [octavoMain, "cluster", "--config", this.#path], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.process.stdout, this.process.stderr])
      stream?.on("data", (text: Buffer) => (this.#said += text.toString()));
  }

  /** With one replica, once that takes requests. `source`: a model; without it octavo-mini. */
  static async start(source?: string): Promise<ClusterProcess> {
    const cluster = new ClusterProcess(source);
    [, cluster.#url = ""] = await cluster.#heard(/cluster: (http:\S+)\/v1,/);
    await cluster.#heard(/is ready/);
    return cluster;
  }

  get url(): string {
    return this.#url;
  }

  /** Milliseconds from what `act` does until a replica is ready after it. */
  async msToReady(act: () => void): Promise<number> {
    const from = this.#said.length;
    const startMs = performance.now();
    act();
    await this.#heard(/is ready/, from);
    return performance.now() - startMs;
  }

  /** Milliseconds until a second replica takes requests. */
  addReplica(): Promise<number> {
    return this.msToReady(() => {
      this.#configure(2);
      this.process.kill("SIGHUP");
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasEnded) return;
    this.process.kill("SIGTERM");
    await once(this.process, "exit");
  }

  get #hasEnded(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  async #heard(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#said.slice(from));
      if (found !== null) return found;
      if (this.#hasEnded)
        throw new OctavoError("internal_error", `octavo cluster ended: ${this.#said.slice(-1000)}`);
      await sleep(2);
    }
  }

  #configure(replicas: number): void {
    const source = this.#source === undefined ? "" : `, model_source: ${JSON.stringify(this.#source)}`;
    writeFileSync(
      this.#path,
      `version: 1
driver: { kind: local, log: "off" }
gateway: { listen: { port: 0 }, admin: { port: 0, key: ${key} }, access_log: "off" }
deployments:
  - name: ${model}
    model_loading_config: { model_id: ${model}${source} }
    engine_kwargs: { max_model_len: 1024 }
    max_ongoing_requests: 64
    num_replicas: ${replicas}
`,
    );
  }
}

interface Asked {
  readonly isOk: boolean;
  readonly firstMs: number;
}

/** Asks for a stream of so many tokens. */
export async function askCluster(
  url: string,
  prompt: readonly number[],
  outputTokens: number,
  replica?: string,
): Promise<Asked> {
  const startMs = performance.now();
  try {
    const answer = await request(`${url}/v1/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(replica !== undefined && { "x-octavo-replica-id": replica }),
      },
      body: JSON.stringify({ model, prompt, max_tokens: outputTokens, ignore_eos: true, stream: true }),
    });
    let firstMs = 0;
    let text = "";
    for await (const chunk of answer.body) {
      if (firstMs === 0) firstMs = performance.now() - startMs;
      text += String(chunk);
    }
    return {
      isOk: answer.statusCode === 200 && text.includes("[DONE]") && !text.includes("error_code"),
      firstMs,
    };
  } catch {
    return { isOk: false, firstMs: 0 };
  }
}

export function uncachedPrompt(count: number): readonly number[] {
  return Array.from({ length: count }, () => 40 + Math.floor(Math.random() * 200));
}

/** Until the standby process has started, and what serves is compiled. */
export async function warmUp(url: string, numRequests: number, clients = 2): Promise<void> {
  await sleep(3000);
  await Promise.all(
    Array.from({ length: clients }, async () => {
      for (let count = 0; count < numRequests; count += 1) await askCluster(url, uncachedPrompt(60), 10);
    }),
  );
}
