import { asArray, asNumber, asRecord, asString, OctavoError } from "@octavo/protocol";
import type { AnsweredToolCall } from "../answers/answer.js";
import type { CaseMessage, ToolDefinition } from "../cases/eval-case.js";
import type { ServerRequest } from "../http/openai-server.js";
import { alignPieces } from "./align-pieces.js";
import type { OpenAiTarget } from "./openai-target.js";

/** A conversation and the answer whose tokens are scored, whatever the model itself would have said. */
export interface ForcedQuestion {
  readonly messages: readonly CaseMessage[];
  readonly tools?: readonly ToolDefinition[];
  readonly answer: { readonly text: string; readonly toolCalls?: readonly AnsweredToolCall[] };
  readonly templateVariables?: Readonly<Record<string, unknown>>;
}

/** Logprobs of an answer that was given, token by token, not generated. */
export interface ForcedAnswer {
  /**
   * The answer as the model's template wrote it: its text, or with tool calls the template's form of them up to the end
   * of the message.
   */
  readonly text: string;
  readonly promptTokens: number;
  readonly tokens: readonly ForcedLogprob[];
}

/** One token of the answer under the model. */
export interface ForcedLogprob {
  /** Undefined where the server does not tell ids. */
  readonly id: number | undefined;
  readonly token: string;
  /** Where it begins in `text`, in UTF-16 units; the tokens of one character share an offset. */
  readonly offset: number;
  readonly logprob: number;
  /** 1: the model's first choice. */
  readonly rank: number;
  readonly topToken: string;
  readonly topLogprob: number;
}

/**
 * Logprobs of a given answer under a server's model, by `prompt_logprobs` as vLLM and Octavo have it: the rendered
 * conversation is tokenized with the answer and without it, and scored as one prompt. Servers without `/tokenize` get the
 * conversation with the answer as a message to continue.
 *
 * @throws OctavoError `unsupported_parameter` where the server gives no logprobs of prompts, `target_unreachable` where it
 * does not answer
 */
export async function forcedLogprobs(
  target: OpenAiTarget,
  question: ForcedQuestion,
  { signal }: { readonly signal: AbortSignal },
): Promise<ForcedAnswer> {
  const model = await target.modelName(signal);
  const client: Client = {
    url: target.server.baseUrl,
    fields: model === undefined ? {} : { model },
    ask: (request) => target.server.json({ ...request, signal }),
  };
  const ids = await tokenized(client, question);
  const scored = ids === undefined ? await scoreChat(client, question) : await scoreIds(client, ids);
  const isClosed = (question.answer.toolCalls ?? []).length > 0;
  const answered = scored.positions.slice(scored.promptTokens);
  // what a template writes between messages no model ever says
  const tokens = isClosed
    ? answered.slice(0, answered.findLastIndex(({ token }) => token.trim() !== "") + 1)
    : answered;
  const text = await exactText(client, tokens);
  const offsets = alignPieces(
    text,
    tokens.map(({ token }) => token),
  );
  return {
    text,
    promptTokens: scored.promptTokens,
    tokens: tokens.map((token, index) => ({ ...token, offset: offsets[index]! })),
  };
}

interface Client {
  readonly url: string;
  readonly fields: Readonly<Record<string, unknown>>;
  ask(request: Omit<ServerRequest, "signal">): ReturnType<OpenAiTarget["server"]["json"]>;
}

type Position = Omit<ForcedLogprob, "offset">;

interface ScoredPrompt {
  readonly promptTokens: number;
  readonly positions: readonly Position[];
}

/** The fields that render the conversation up to where an answer begins, and with the answer in it. */
function rendered(question: ForcedQuestion, withAnswer: boolean): Readonly<Record<string, unknown>> {
  const { messages, tools, answer, templateVariables } = question;
  const calls = answer.toolCalls ?? [];
  const said = {
    role: "assistant",
    content: answer.text === "" && calls.length > 0 ? null : answer.text,
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, arguments: given }, index) => ({
            id: id === "" ? `call_${index}` : id,
            type: "function",
            function: { name, arguments: given },
          })),
        }),
  };
  return {
    messages: withAnswer ? [...messages, said] : messages,
    ...(tools === undefined || tools.length === 0 ? {} : { tools }),
    ...(templateVariables === undefined ? {} : { chat_template_kwargs: templateVariables }),
    add_generation_prompt: !withAnswer,
    // a message with calls cannot be left open: the template closes it
    continue_final_message: withAnswer && calls.length === 0,
  };
}

interface TokenIds {
  readonly promptTokens: number;
  readonly ids: readonly number[];
}

/** Undefined where the server has no `/tokenize`. */
async function tokenized(client: Client, question: ForcedQuestion): Promise<TokenIds | undefined> {
  const both: number[][] = [];
  for (const withAnswer of [false, true]) {
    const body = { ...client.fields, ...rendered(question, withAnswer) };
    const reply = await client.ask({ path: "/tokenize", atRoot: true, body });
    if (!reply.ok) {
      const { httpStatus } = reply.failure;
      if (httpStatus === 404 || httpStatus === 405 || httpStatus === 501) return undefined;
      throw refused(client, reply.failure);
    }
    both.push(asArray(asRecord(reply.value)["tokens"]).filter((id) => typeof id === "number"));
  }
  const [before, ids] = both as [number[], number[]];
  // the last token before the answer may have grown into it
  let promptTokens = 0;
  while (promptTokens < before.length && before[promptTokens] === ids[promptTokens]) promptTokens += 1;
  return { promptTokens, ids };
}

async function scoreIds(client: Client, { promptTokens, ids }: TokenIds): Promise<ScoredPrompt> {
  const body = { ...client.fields, prompt: ids, max_tokens: 1, temperature: 0, prompt_logprobs: 1 };
  const reply = await client.ask({ path: "/completions", body });
  if (!reply.ok) throw refused(client, reply.failure);
  const choice = asRecord(asArray(asRecord(reply.value)["choices"])[0]);
  return { promptTokens, positions: positionsOf(client, choice["prompt_logprobs"], ids) };
}

async function scoreChat(client: Client, question: ForcedQuestion): Promise<ScoredPrompt> {
  const common = { ...client.fields, max_tokens: 1, temperature: 0 };
  const before = await client.ask({
    path: "/chat/completions",
    body: { ...common, ...rendered(question, false) },
  });
  if (!before.ok) throw refused(client, before.failure);
  const promptTokens = asNumber(asRecord(asRecord(before.value)["usage"])["prompt_tokens"]);
  if (promptTokens === undefined) throw unsupported(client, "says no `usage.prompt_tokens`");
  const whole = await client.ask({
    path: "/chat/completions",
    body: { ...common, ...rendered(question, true), prompt_logprobs: 1, return_token_ids: true },
  });
  if (!whole.ok) throw refused(client, whole.failure);
  const root = asRecord(whole.value);
  const ids = asArray(root["prompt_token_ids"]).filter((id) => typeof id === "number");
  return { promptTokens, positions: positionsOf(client, root["prompt_logprobs"], ids) };
}

/** One for each prompt token; the first has none before it, which makes it certain. */
function positionsOf(client: Client, logprobs: unknown, ids: readonly number[]): readonly Position[] {
  const entries = asArray(logprobs);
  if (entries.length === 0) throw unsupported(client, "gives no `prompt_logprobs`");
  return entries.map((entry, index) => {
    const alternatives = Object.entries(asRecord(entry)).map(([id, fields]) => alternativeOf(id, fields));
    const known = ids[index];
    // JSON does not keep the order of ids; of two entries the worse one is the token that stands there
    const own =
      alternatives.find(({ id }) => id === known) ??
      alternatives.reduce<Alternative | undefined>(
        (worst, one) => (worst === undefined || one.rank > worst.rank ? one : worst),
        undefined,
      );
    if (own === undefined) return { id: known, token: "", logprob: 0, rank: 1, topToken: "", topLogprob: 0 };
    const top = alternatives.reduce((best, one) => (one.logprob > best.logprob ? one : best), own);
    return {
      id: known ?? own.id,
      token: own.token,
      logprob: own.logprob,
      rank: own.rank,
      topToken: top.token,
      topLogprob: top.logprob,
    };
  });
}

interface Alternative {
  readonly id: number;
  readonly token: string;
  readonly logprob: number;
  readonly rank: number;
}

function alternativeOf(id: string, value: unknown): Alternative {
  const fields = asRecord(value);
  return {
    id: Number(id),
    token: readable(asString(fields["decoded_token"]) ?? ""),
    logprob: asNumber(fields["logprob"]) ?? Number.NEGATIVE_INFINITY,
    rank: asNumber(fields["rank"]) ?? 1,
  };
}

/** OpenAI and Octavo write a part of a character as `bytes:\\xe2\\x82`, vLLM as U+FFFD, which is how it goes on here. */
function readable(token: string): string {
  if (!/^bytes:(?:\\x[0-9a-f]{2})+$/.test(token)) return token;
  return Buffer.from(token.replaceAll(/^bytes:|\\x/g, ""), "hex").toString("utf8");
}

/** Tokens may hold parts of characters, whose text is known only together. */
async function exactText(client: Client, tokens: readonly Position[]): Promise<string> {
  const joined = tokens.map(({ token }) => token).join("");
  if (!joined.includes("\ufffd")) return joined;
  const ids = tokens.flatMap(({ id }) => (id === undefined ? [] : [id]));
  if (ids.length === tokens.length) {
    const reply = await client.ask({
      path: "/detokenize",
      atRoot: true,
      body: { ...client.fields, tokens: ids },
    });
    const text = reply.ok ? asString(asRecord(reply.value)["prompt"]) : undefined;
    if (text !== undefined) return text;
  }
  return joined;
}

function refused(client: Client, failure: { readonly code: string; readonly message: string }): OctavoError {
  return new OctavoError(
    "target_unreachable",
    `${client.url} did not score the answer: ${failure.code}: ${failure.message}`,
  );
}

function unsupported(client: Client, what: string): OctavoError {
  return new OctavoError(
    "unsupported_parameter",
    `${client.url} ${what}: answers can be scored token by token on vLLM and Octavo only`,
  );
}
