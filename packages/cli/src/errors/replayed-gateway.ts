import { createHash, randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Observation } from "@octavo/evals";
import { Gateway, type GatewayConfig, GatewayListener, replayConfig } from "@octavo/gateway";
import {
  type GatewayRequest,
  type GatewayWorkload,
  type LoggedCall,
  loggedCalls,
  noFault,
  numAlike,
  type PreparedReplay,
  type RecordedTarget,
  type ReplayRun,
  type TargetAnswer,
  unfailedScore,
} from "@octavo/optimize";
import { asNumber, asString, parseJson } from "@octavo/protocol";
import { OctavoError } from "@octavo/protocol/errors";
import { Random } from "@octavo/statistics";
import { type StandInAnswer, type StandInCall, StandInTarget } from "./stand-in-target.js";
import { replayObservation } from "./proof-options.js";

export interface ReplayedGatewayOptions {
  readonly config: GatewayConfig;
  readonly workload: GatewayWorkload;
  /** Of replays: 0 has what was recorded wherever it was, others what was recorded of calls that are alike. */
  readonly pair: number;
  readonly seed: number;
  readonly speedup: number;
  readonly signal: AbortSignal;
}

/** Bytes that the gateway takes for a token. */
const bytesPerToken = 4;
/** After a refusal that does not say for how long, the gateway leaves a target alone for so long. */
const usualRetryAfterS = 1;

/** The gateway itself in front of stand-ins, with the recorded calls to send; what it did is read from its own access log. */
export class ReplayedGateway implements PreparedReplay {
  readonly #options: ReplayedGatewayOptions;
  readonly #folder: string;
  readonly #standIns: StandInTarget[] = [];
  /** Every call under way listens to it. */
  readonly #signal: AbortSignal;
  readonly #keys: ReadonlyMap<string, string>;
  /** Of a target that was asked, and of which the log does not say enough. */
  #unknown: string | undefined;
  #url = "";
  #stop: (() => Promise<void>) | undefined;

  private constructor(options: ReplayedGatewayOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
    this.#signal = AbortSignal.any([options.signal]);
    setMaxListeners(0, this.#signal);
    const names = new Set(options.workload.requests.flatMap((request) => keyOf(request) ?? []));
    this.#keys = new Map([...names].map((name) => [name, randomBytes(16).toString("hex")]));
  }

  static async start(options: ReplayedGatewayOptions): Promise<ReplayedGateway> {
    const replay = new ReplayedGateway(options, await mkdtemp(join(tmpdir(), "octavo-replay-")));
    try {
      await replay.#open();
      return replay;
    } catch (thrown) {
      await replay[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  /** Sends the calls once. Throws `dataset_invalid` where a target was asked of which the log does not say enough. */
  async run(): Promise<ReplayRun> {
    const { workload, speedup } = this.#options;
    const beginMs = performance.now();
    await Promise.all(
      workload.requests.map(async (request, index) => {
        await this.#sleep(beginMs + request.atMs / speedup - performance.now());
        await this.#send(request, index);
      }),
    ).catch((thrown: unknown) => {
      if (!this.#signal.aborted) throw thrown;
      throw new OctavoError("request_cancelled", "the proof was interrupted", { cause: thrown });
    });
    const durationMs = (performance.now() - beginMs) * speedup;
    await this.#close();
    if (this.#unknown !== undefined)
      throw new OctavoError(
        "dataset_invalid",
        `the replay asks ${this.#unknown}, of which the log has fewer than ${numAlike} calls: give one that shows what it does with --gateway-log`,
        { param: "gateway-log" },
      );
    const lines = (await readFile(this.#log, "utf8")).split("\n").map((line) => parseJson(line)?.value);
    const calls = new Map(loggedCalls(lines).map((call) => [call.fields["request_id"], call]));
    const observations = workload.requests.map((request, index) => {
      const call = calls.get(requestId(index));
      if (call === undefined) throw new OctavoError("internal_error", `the replay has no call ${index}`);
      return observed(request, index, call, speedup);
    });
    const usd = [...calls.values()].reduce((sum, { fields }) => sum + (asNumber(fields["cost_usd"]) ?? 0), 0);
    return { observations, computeMs: undefined, durationMs, usd };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
    await Promise.all(this.#standIns.map((one) => one[Symbol.asyncDispose]()));
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #log(): string {
    return join(this.#folder, "access.log");
  }

  async #open(): Promise<void> {
    const { config, workload, pair, seed, speedup } = this.#options;
    const urls = new Map<string, string>();
    for (const [at, name] of Object.keys(config.targets).entries()) {
      const target = workload.targets.get(name);
      const standIn = await StandInTarget.start((call) => this.#answerOf({ name, at, target }, call));
      this.#standIns.push(standIn);
      urls.set(name, standIn.url);
    }
    const keys = [...this.#keys].map(([name, key]) => {
      const [id, tenant] = JSON.parse(name) as [string, string | null];
      const sha256 = createHash("sha256").update(key).digest("hex");
      return { id, sha256, tags: [], disabled: false, ...(tenant !== null && { tenant }) };
    });
    const random = new Random(seed + pair);
    const gateway = await Gateway.open({
      config: replayConfig(config, { urls, speedup, keys, accessLog: this.#log }),
      random: () => random.uniform(),
    });
    this.#stop = () => gateway.close();
    const listener = new GatewayListener(gateway, config.limits);
    this.#url = (await listener.listen("127.0.0.1", 0)).url;
    this.#stop = async () => {
      await gateway.drain(0);
      await listener.close();
      await gateway.close();
    };
  }

  async #close(): Promise<void> {
    const stop = this.#stop;
    this.#stop = undefined;
    await stop?.();
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(Math.max(0, ms), undefined, { signal: this.#signal });
  }

  async #send(request: GatewayRequest, index: number): Promise<void> {
    const { model, isStream, promptTokens, outputTokens } = request;
    const key = this.#keys.get(keyOf(request) ?? "");
    const response = await fetch(`${this.#url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-request-id": requestId(index),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model,
        messages: [{ role: "user", content: "x".repeat(bytesPerToken * promptTokens) }],
        max_tokens: outputTokens,
        stream: isStream,
      }),
      signal: this.#signal,
    });
    // a stream that breaks off is in the log
    await response.arrayBuffer().catch(() => this.#signal.throwIfAborted());
  }

  #answerOf(
    {
      name,
      at,
      target,
    }: { readonly name: string; readonly at: number; readonly target: RecordedTarget | undefined },
    { id, turn, besides }: StandInCall,
  ): StandInAnswer {
    const { workload, pair, seed, speedup } = this.#options;
    const index = Number(id.slice(idPrefix.length));
    const request = workload.requests[index];
    if (request === undefined) throw new OctavoError("internal_error", `the replay has no call ${id}`);
    const { callId, epochMs, isStream, promptTokens, cachedTokens, outputTokens } = request;
    const what = target?.answerTo({
      callId,
      atMs: epochMs,
      isStream,
      turn,
      besides,
      isAsRecorded: pair === 0,
      random: new Random(seed + pair).fork(index * 4096 + at * 16 + turn),
    });
    if (target === undefined || target.numAnswers < numAlike) this.#unknown = name;
    return {
      what: sooner(what ?? { kind: "status", status: 503, durationMs: 0 }, speedup),
      promptTokens,
      cachedTokens,
      outputTokens,
      retryAfterS: usualRetryAfterS / speedup,
    };
  }
}

const idPrefix = "replay-";

function requestId(index: number): string {
  return `${idPrefix}${index}`;
}

/** Of a caller that is known. */
function keyOf({ keyId, tenant }: GatewayRequest): string | undefined {
  const id = keyId ?? tenant;
  return id === undefined ? undefined : JSON.stringify([id, tenant ?? null]);
}

function sooner(what: TargetAnswer, speedup: number): TargetAnswer {
  if (what.kind === "silent") return what;
  const durationMs = what.durationMs / speedup;
  if (what.kind === "answer") return { ...what, firstByteMs: what.firstByteMs / speedup, durationMs };
  if (what.kind === "broken" && what.firstByteMs !== undefined)
    return { ...what, firstByteMs: what.firstByteMs / speedup, durationMs };
  return { ...what, durationMs };
}

/** Times as they would be at the recording's pace. */
function observed(
  { tenant, epochMs, promptTokens, outputTokens }: GatewayRequest,
  index: number,
  { fields, attempts }: LoggedCall,
  speedup: number,
): Observation {
  const status = asNumber(fields["status"]) ?? 0;
  const failureCode = asString(fields["error"]) ?? (status >= 400 ? String(status) : undefined);
  const firstByteMs = asNumber(fields["first_byte_ms"]);
  return replayObservation({
    caseId: String(index),
    tenant,
    replica: asString(fields["target"]),
    scheduledEpochMs: epochMs,
    firstTokenMs: failureCode !== undefined || firstByteMs === undefined ? undefined : firstByteMs * speedup,
    durationMs: (asNumber(fields["duration_ms"]) ?? 0) * speedup,
    promptTokens,
    completionTokens: outputTokens,
    failureCode,
    scores: { [unfailedScore]: Number(attempts.every(({ outcome }) => noFault.has(outcome))) },
  });
}
