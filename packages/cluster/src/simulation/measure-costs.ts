import { asObjects, asRecord, createSseDecoder, type JsonFields, OctavoError } from "@octavo/protocol";
import { quantile } from "@octavo/statistics";
import { request } from "undici";
import { clusterCosts, type ClusterCosts } from "./step-costs.js";

/** Prompt lengths and numbers of streams between which costs are taken as a line. */
const prompts = [32, 256] as const;
const streams = [1, 8] as const;
const outputTokens = 32;
const tries = 7;

interface Timing {
  readonly firstMs: number;
  /** Between tokens after the first. */
  readonly tokenMs: number;
}

export interface MeasuredReplica {
  /** Of the replica, or of a gateway before several. */
  readonly url: string;
  readonly model: string;
  /** Behind a gateway: ids of replicas that share a machine. Costs are the first one's, and what the others cost it. */
  readonly replicas?: readonly string[] | undefined;
}

/**
 * Measures a replica's step costs from outside, as its clients see them: first tokens of short and long prompts, which nothing has
 * cached, of one request and of several at once, and the pace of one stream, of eight, and of one beside those of other replicas. Each is
 * the lower quartile of some tries, for what else a machine does only adds. The replicas should have nothing else to do. Throws `target_unreachable`.
 */
export async function measureCosts({ url, model, replicas = [] }: MeasuredReplica): Promise<ClusterCosts> {
  const ask = (replica: string | undefined, numTokens: number, maxTokens: number): Promise<Timing> =>
    stream({ url, model, replica, numTokens, maxTokens });
  const [own, ...others] = replicas;
  // the others go on longer than what is timed
  const besides = (beside: readonly string[]): Promise<Timing>[] =>
    beside.map((other) => ask(other, prompts[0], outputTokens * 2));
  const promptMs = (
    numTokens: number,
    { count = 1, beside = [] }: { count?: number; beside?: readonly string[] } = {},
  ): Promise<number> =>
    repeatedly(async () => {
      const [timings] = await Promise.all([
        repeated(count, () => ask(own, numTokens, 1)),
        ...besides(beside),
      ]);
      return Math.max(...timings.map(({ firstMs }) => firstMs));
    });
  const paceMs = (count: number, beside: readonly string[] = []): Promise<number> =>
    repeatedly(async () => {
      const [timings] = await Promise.all([
        repeated(count, () => ask(own, prompts[0], outputTokens)),
        ...besides(beside),
      ]);
      return timings.reduce((sum, { tokenMs }) => sum + tokenMs, 0) / count;
    });
  const [short, long] = [await promptMs(prompts[0]), await promptMs(prompts[1])];
  const burst = await promptMs(prompts[0], { count: streams[1] });
  const [alone, together] = [await paceMs(streams[0]), await paceMs(streams[1])];
  const perPromptTokenMs = Math.max(0, (long - short) / (prompts[1] - prompts[0]));
  const perSequenceMs = Math.max(0, (together - alone) / (streams[1] - streams[0]));
  const baseMs = Math.max(0, alone - perSequenceMs);
  const numFurther = streams[1] - 1;
  // the first of a burst has a step by itself, the others one together
  const burstStepMs = baseMs + numFurther * perPromptTokenMs * prompts[0];
  const perRequestMs = Math.max(0, (burst - short - burstStepMs) / numFurther);
  const overheadMs = short - baseMs - perPromptTokenMs * prompts[0] - perRequestMs;
  const slowdown = (besideMs: number, aloneMs: number): number =>
    Math.max(0, besideMs / aloneMs - 1) / Math.max(1, others.length);
  const hasOthers = others.length > 0;
  return clusterCosts.parse({
    base_ms: baseMs,
    per_prompt_token_ms: perPromptTokenMs,
    per_sequence_ms: perSequenceMs,
    per_request_ms: perRequestMs,
    request_overhead_ms: Math.max(0, overheadMs),
    replicas_per_host: Math.max(1, replicas.length),
    neighbour_slowdown: hasOthers ? slowdown(await paceMs(streams[0], others), alone) : 0,
    neighbour_prompt_slowdown: hasOthers ? slowdown(await promptMs(prompts[1], { beside: others }), long) : 0,
  });
}

async function repeatedly(measure: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  while (values.length < tries) values.push(await measure());
  return quantile(values, 0.25);
}

function repeated<T>(count: number, make: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, make));
}

let salt = 0;

/** Token ids that every vocabulary has; no two prompts begin alike, so that none is cached. */
function promptOf(numTokens: number): readonly number[] {
  salt += 1;
  return Array.from({ length: numTokens }, (_, at) => 40 + ((salt * 31 + at * 7) % 200));
}

interface Asked {
  readonly url: string;
  readonly model: string;
  readonly replica: string | undefined;
  readonly numTokens: number;
  readonly maxTokens: number;
}

async function stream({ url, model, replica, numTokens, maxTokens }: Asked): Promise<Timing> {
  const body: JsonFields = {
    model,
    prompt: promptOf(numTokens),
    max_tokens: maxTokens,
    temperature: 0,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
    cache_salt: `measure ${salt}`,
  };
  const startMs = performance.now();
  try {
    const answer = await request(`${url}/v1/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(replica !== undefined && { "x-octavo-replica-id": replica }),
      },
      body: JSON.stringify(body),
    });
    if (answer.statusCode !== 200)
      throw new OctavoError(
        "target_unreachable",
        `${url} answered ${answer.statusCode}: ${(await answer.body.text()).slice(0, 300)}`,
      );
    const events = createSseDecoder();
    let [firstMs, lastMs, completionTokens] = [Number.NaN, Number.NaN, maxTokens];
    for await (const chunk of answer.body)
      for (const { data } of events.push(String(chunk))) {
        if (data === "[DONE]") continue;
        const value = asRecord(JSON.parse(data));
        const used = asRecord(value["usage"])["completion_tokens"];
        if (typeof used === "number") completionTokens = used;
        if (asObjects(value["choices"]).length === 0) continue;
        lastMs = performance.now() - startMs;
        if (Number.isNaN(firstMs)) firstMs = lastMs;
      }
    return { firstMs, tokenMs: completionTokens < 2 ? 0 : (lastMs - firstMs) / (completionTokens - 1) };
  } catch (cause) {
    if (cause instanceof OctavoError) throw cause;
    throw new OctavoError("target_unreachable", `${url}: ${(cause as Error).message}`, { cause });
  }
}
