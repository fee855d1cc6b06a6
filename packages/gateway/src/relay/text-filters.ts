import { asNumber, asObjects, asRecord, asString, type JsonFields, OctavoError } from "@octavo/protocol";
import type { TextChannel, TextFilter } from "../exchange/stage.js";
import { type CallText, callText, withCallText } from "./call-text.js";
import { isTyped, TypedTexts } from "./typed-texts.js";

/** Runs an answer's text through the filters of all stages, in order, chunk by chunk or whole. */
export class TextFilters {
  readonly #filters: readonly TextFilter[];
  readonly #open = new Map<string, TextChannel>();
  /** Of calls by choice and index, for what was held back of their texts. */
  readonly #callTypes = new Map<string, CallText["type"]>();
  readonly #typed = new TypedTexts({
    push: (channel, text) => this.#push(channel, text),
    end: (channel) => this.#end(channel),
  });

  constructor(filters: readonly TextFilter[]) {
    this.#filters = filters;
  }

  /** What leaves now in place of one event of a stream, in any API's shape. */
  async events(json: JsonFields): Promise<readonly JsonFields[]> {
    return isTyped(json) ? this.#typed.events(json) : [await this.#chunk(withChoices(json))];
  }

  /** A chunk with the text that may leave now. At a choice's finish, what was held back leaves before it. */
  async #chunk(json: JsonFields): Promise<JsonFields> {
    const choices: JsonFields[] = [];
    for (const choice of asObjects(json["choices"])) {
      const index = asNumber(choice["index"]) ?? 0;
      const filtered = await this.#choice(choice, index, (channel, text) => this.#push(channel, text));
      const isFinish = choice["finish_reason"] !== undefined && choice["finish_reason"] !== null;
      choices.push(isFinish ? await this.#withRest(filtered, index) : filtered);
    }
    return { ...json, choices };
  }

  /** A whole answer with the text that may leave. */
  async whole(json: JsonFields): Promise<JsonFields> {
    if (isTyped(json)) return this.#typed.whole(json);
    withChoices(json);
    const choices: JsonFields[] = [];
    for (const choice of asObjects(json["choices"])) {
      const index = asNumber(choice["index"]) ?? 0;
      const filter = async (channel: TextChannel, text: string): Promise<string> => {
        const first = await this.#push(channel, text);
        return first + (await this.#end(channel));
      };
      choices.push(await this.#choice(choice, index, filter));
    }
    return { ...json, choices };
  }

  async #choice(
    choice: JsonFields,
    index: number,
    filter: (channel: TextChannel, text: string) => Promise<string>,
  ): Promise<JsonFields> {
    const holder = choice["message"] === undefined ? "delta" : "message";
    const changed: Record<string, unknown> = { ...choice };
    const text = asString(choice["text"]);
    if (text !== undefined)
      changed["text"] = await filter({ choice: index, kind: "content", index: 0 }, text);
    const message = asRecord(choice[holder]);
    if (Object.keys(message).length === 0) return changed;
    const fields: Record<string, unknown> = { ...message };
    for (const [field, kind] of textKinds) {
      const value = asString(message[field]);
      if (value !== undefined) fields[field] = await filter({ choice: index, kind, index: 0 }, value);
    }
    if (Array.isArray(message["tool_calls"])) {
      const calls: JsonFields[] = [];
      for (const [place, call] of asObjects(message["tool_calls"]).entries()) {
        const { type, text: args } = callText(call);
        const channel = {
          choice: index,
          kind: "arguments",
          index: asNumber(call["index"]) ?? place,
        } as const;
        this.#callTypes.set(`${index} ${channel.index}`, type);
        calls.push(args === undefined ? call : withCallText(type, await filter(channel, args), call));
      }
      fields["tool_calls"] = calls;
    }
    changed[holder] = fields;
    return changed;
  }

  async #withRest(choice: JsonFields, index: number): Promise<JsonFields> {
    let changed = choice;
    for (const [key, channel] of this.#open) {
      if (channel.choice !== index) continue;
      this.#open.delete(key);
      const rest = await this.#end(channel);
      const type = this.#callTypes.get(`${index} ${channel.index}`) ?? "function";
      if (rest !== "") changed = withText(changed, channel, type, rest);
    }
    return changed;
  }

  async #push(channel: TextChannel, text: string): Promise<string> {
    const key = `${channel.choice} ${channel.kind} ${channel.index}`;
    if (!this.#open.has(key)) this.#open.set(key, channel);
    let passed = text;
    for (const filter of this.#filters) if (passed !== "") passed = await filter.push(channel, passed);
    return passed;
  }

  async #end(channel: TextChannel): Promise<string> {
    let rest = "";
    for (const filter of this.#filters) {
      const passed = rest === "" ? "" : await filter.push(channel, rest);
      rest = passed + (await filter.end(channel));
    }
    return rest;
  }
}

/** What has no known shape cannot be read, and so does not leave. */
function withChoices(json: JsonFields): JsonFields {
  if (Array.isArray(json["choices"])) return json;
  throw new OctavoError(
    "target_answer_invalid",
    "the target's answer has a shape that rules on its text cannot read",
  );
}

const textKinds = [
  ["content", "content"],
  ["refusal", "content"],
  ["reasoning_content", "reasoning"],
  ["reasoning", "reasoning"],
] as const;

/** Appends text to a finish chunk's choice. */
function withText(
  choice: JsonFields,
  { kind, index }: TextChannel,
  type: CallText["type"],
  text: string,
): JsonFields {
  if (choice["text"] !== undefined) return { ...choice, text: `${asString(choice["text"]) ?? ""}${text}` };
  const delta = asRecord(choice["delta"]);
  if (kind === "arguments") {
    const calls = [...asObjects(delta["tool_calls"]), withCallText(type, text, { index })];
    return { ...choice, delta: { ...delta, tool_calls: calls } };
  }
  const field = kind === "content" ? "content" : "reasoning_content";
  return { ...choice, delta: { ...delta, [field]: `${asString(delta[field]) ?? ""}${text}` } };
}
