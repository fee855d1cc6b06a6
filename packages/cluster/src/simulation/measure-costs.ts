import { asObjects, asRecord, createSseDecoder, type JsonFields, OctavoError } from "@octavo/protocol";
import { request } from "undici";
import { clusterCosts, type ClusterCosts } from "./step-costs.js";

/** Prompt lengths and numbers of streams between which costs are taken as a line. */
const prompts = [32, 256] as const;
const streams = [1, 8] as const;
const outputTokens = 48;
/** The least of so many tries: everything else on the machine only adds. */
const tries = 12;

interface Timing {
  readonly firstMs: number;
  /** Between tokens after the first. */
  readonly tokenMs: number;
}

/**
 * Measures a replica's step costs from outside, as its clients see them: first tokens of short and long prompts, which nothing has
 * cached, and the pace of one stream and of eight. The replica should have nothing else to do. Throws `target_unreachable`.
 */
export async function measureCosts(url: string, model: string): Promise<ClusterCosts> {
  const [short, long] = [await promptMs(url, model, prompts[0]), await promptMs(url, model, prompts[1])];
  const [alone, together] = [await paceMs(url, model, streams[0]), await paceMs(url, model, streams[1])];
  const perPromptTokenMs = Math.max(0, (long - short) / (prompts[1] - prompts[0]));
  const perSequenceMs = Math.max(0, (together - alone) / (streams[1] - streams[0]));
  const baseMs = Math.max(0, alone - perSequenceMs);
  return clusterCosts.parse({
    base_ms: baseMs,
    per_prompt_token_ms: perPromptTokenMs,
    per_sequence_ms: perSequenceMs,
    per_request_ms: Math.max(0, short - baseMs - perPromptTokenMs * prompts[0]),
  });
}

async function promptMs(url: string, model: string, numTokens: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < tries; turn += 1)
    least = Math.min(least, (await stream(url, model, numTokens, 1)).firstMs);
  return least;
}

async function paceMs(url: string, model: string, count: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < tries; turn += 1) {
    const timings = await Promise.all(
      Array.from({ length: count }, () => stream(url, model, prompts[0], outputTokens)),
    );
    least = Math.min(least, timings.reduce((sum, { tokenMs }) => sum + tokenMs, 0) / count);
  }
  return least;
}

let salt = 0;

/** Token ids that every vocabulary has; no two prompts begin alike, so that none is cached. */
function promptOf(numTokens: number): readonly number[] {
  salt += 1;
  return Array.from({ length: numTokens }, (_, at) => 40 + ((salt * 31 + at * 7) % 200));
}

async function stream(url: string, model: string, numTokens: number, maxTokens: number): Promise<Timing> {
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
      headers: { "content-type": "application/json" },
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
