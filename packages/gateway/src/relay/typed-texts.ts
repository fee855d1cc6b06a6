import {
  asNumber,
  asObject,
  asObjects,
  asRecord,
  asString,
  type JsonFields,
  OctavoError,
  parseJson,
} from "@octavo/protocol";
import type { TextChannel } from "../exchange/stage.js";

/** What runs a channel's text through the filters. */
export interface ChannelFilter {
  push(channel: TextChannel, text: string): Promise<string>;
  end(channel: TextChannel): Promise<string>;
}

/** A text of an answer: a part of a message, a thought, the arguments of a call. */
interface Place {
  readonly channel: TextChannel;
  /** What may leave of it so far. */
  passed: string;
  isBegun: boolean;
  isEnded: boolean;
  /** The last event that brought a piece of it, for what was held back. */
  last: ((text: string) => JsonFields) | undefined;
}

/**
 * Filters the texts of `/responses` and `/messages`, whole or as their typed events. A text's pieces are followed as one; where a
 * later event repeats the text, it repeats what the filters let through.
 */
export class TypedTexts {
  readonly #filter: ChannelFilter;
  readonly #places = new Map<string, Place>();
  /** Events to be sent before the one at hand. */
  #before: JsonFields[] = [];
  #sequence = 0;

  constructor(filter: ChannelFilter) {
    this.#filter = filter;
  }

  /** A whole answer. */
  whole(json: JsonFields): Promise<JsonFields> {
    return Array.isArray(json["content"]) ? this.#message(json) : this.#response(json);
  }

  /** The events that leave in place of one. */
  async events(json: JsonFields): Promise<readonly JsonFields[]> {
    this.#before = [];
    const event = await this.#event(json);
    const events = event === undefined ? this.#before : [...this.#before, event];
    if (typeof json["sequence_number"] !== "number") return events;
    return events.map((one) => ({ ...one, sequence_number: this.#sequence++ }));
  }

  async #event(json: JsonFields): Promise<JsonFields | undefined> {
    const type = asString(json["type"]) ?? "";
    if (type.startsWith("response.")) return this.#responseEvent(type, json);
    switch (type) {
      case "content_block_start": {
        const block = asRecord(json["content_block"]);
        return { ...json, content_block: await this.#begin(block, blockFields, String(json["index"])) };
      }
      case "content_block_delta":
        return this.#blockDelta(json);
      case "content_block_stop":
        await this.#endAll((key) => key.startsWith(`${String(json["index"])} `));
        return json;
      case "message_start":
        return { ...json, message: await this.#message(asRecord(json["message"])) };
      case "message_delta":
      case "message_stop":
        await this.#endAll(() => true);
        return json;
    }
    return json;
  }

  async #blockDelta(json: JsonFields): Promise<JsonFields | undefined> {
    const delta = asRecord(json["delta"]);
    for (const [field, kind] of blockDeltaFields) {
      const text = asString(delta[field]);
      if (text === undefined) continue;
      const place = this.#place(`${String(json["index"])} ${kind}`, kind);
      return this.#piece(place, text, (piece) => ({ ...json, delta: { ...delta, [field]: piece } }));
    }
    return json;
  }

  async #message(json: JsonFields): Promise<JsonFields> {
    const content: JsonFields[] = [];
    for (const [index, block] of asObjects(json["content"]).entries()) {
      const changed: Record<string, unknown> = { ...block };
      for (const [field, kind] of blockFields) {
        const text = asString(block[field]);
        if (text !== undefined)
          changed[field] = await this.#full(this.#place(`${index} ${kind}`, kind), text);
      }
      const input = asObject(block["input"]);
      if (input !== undefined && Object.keys(input).length > 0)
        changed["input"] = await this.#input(this.#place(`${index} arguments`, "arguments"), input);
      content.push(changed);
    }
    return { ...json, content };
  }

  /** Arguments as an object: rules read them as the JSON text that a stream brings. */
  async #input(place: Place, input: JsonFields): Promise<JsonFields> {
    const text = JSON.stringify(input);
    const passed = await this.#full(place, text);
    if (passed === text) return input;
    const changed = asObject(parseJson(passed)?.value);
    if (changed === undefined)
      throw new OctavoError(
        "guardrail_unavailable",
        "What a rule cut out of a call's arguments left no JSON object, so the answer cannot leave.",
      );
    return changed;
  }

  async #responseEvent(type: string, json: JsonFields): Promise<JsonFields | undefined> {
    const name = type.slice("response.".length);
    const within = asNumber(json["content_index"]) ?? asNumber(json["summary_index"]) ?? 0;
    const at = `${asNumber(json["output_index"]) ?? 0} ${within}`;
    const response = asObject(json["response"]);
    if (response !== undefined) {
      if (finalResponses.has(name)) await this.#endAll(() => true);
      return { ...json, response: await this.#response(response) };
    }
    const item = asObject(json["item"]);
    if (item !== undefined) {
      const [index] = at.split(" ");
      return { ...json, item: await this.#item(item, Number(index), name.endsWith(".added")) };
    }
    const part = asObject(json["part"]);
    if (part !== undefined) return { ...json, part: await this.#part(part, at, name.endsWith(".added")) };
    const delta = asString(json["delta"]);
    if (name.endsWith(".delta") && delta !== undefined) {
      const of = name.slice(0, -".delta".length);
      const place = this.#place(`${of} ${at}`, kindOf(of));
      return this.#piece(place, delta, (piece) => ({ ...json, delta: piece }));
    }
    if (!name.endsWith(".done")) return json;
    const of = name.slice(0, -".done".length);
    const changed: Record<string, unknown> = { ...json };
    for (const field of fullFields) {
      const text = asString(json[field]);
      if (text !== undefined) changed[field] = await this.#full(this.#place(`${of} ${at}`, kindOf(of)), text);
    }
    return changed;
  }

  async #response(json: JsonFields): Promise<JsonFields> {
    const output: JsonFields[] = [];
    for (const [index, item] of asObjects(json["output"]).entries())
      output.push(await this.#item(item, index, false));
    if (typeof json["output_text"] !== "string") return { ...json, output };
    const texts = output.flatMap(({ content }) => asObjects(content).map((part) => part["text"]));
    return { ...json, output, output_text: texts.filter((text) => typeof text === "string").join("") };
  }

  async #item(item: JsonFields, index: number, isBegun: boolean): Promise<JsonFields> {
    const changed: Record<string, unknown> = { ...item };
    for (const list of ["content", "summary"] as const) {
      if (!Array.isArray(item[list])) continue;
      const parts: JsonFields[] = [];
      for (const [at, part] of asObjects(item[list]).entries())
        parts.push(await this.#part(part, `${index} ${at}`, isBegun));
      changed[list] = parts;
    }
    const type = asString(item["type"]) ?? "";
    const fields = itemFields.map((field) => [field, `${type}_${field}`] as const);
    return this.#texts(changed, fields, `${index} 0`, isBegun);
  }

  #part(part: JsonFields, at: string, isBegun: boolean): Promise<JsonFields> {
    const type = asString(part["type"]) ?? "";
    const name = type === "summary_text" ? "reasoning_summary_text" : type;
    const fields = partFields.map((field) => [field, name] as const);
    return this.#texts(part, fields, at, isBegun);
  }

  async #texts(
    holder: JsonFields,
    fields: readonly (readonly [field: string, name: string])[],
    at: string,
    isBegun: boolean,
  ): Promise<JsonFields> {
    const changed: Record<string, unknown> = { ...holder };
    for (const [field, name] of fields) {
      const text = asString(holder[field]);
      if (text === undefined || text === "") continue;
      const place = this.#place(`${name} ${at}`, kindOf(name));
      changed[field] = isBegun ? await this.#push(place, text) : await this.#full(place, text);
    }
    return changed;
  }

  /** The beginning of a block, which seldom has text. */
  async #begin(
    block: JsonFields,
    fields: readonly (readonly [string, TextChannel["kind"]])[],
    at: string,
  ): Promise<JsonFields> {
    const changed: Record<string, unknown> = { ...block };
    for (const [field, kind] of fields) {
      const text = asString(block[field]);
      if (text !== undefined && text !== "")
        changed[field] = await this.#push(this.#place(`${at} ${kind}`, kind), text);
    }
    return changed;
  }

  /** An event with a piece of a text; none where all of the piece is held back. */
  async #piece(
    place: Place,
    text: string,
    eventOf: (text: string) => JsonFields,
  ): Promise<JsonFields | undefined> {
    place.last = eventOf;
    const passed = await this.#push(place, text);
    return passed === "" && text !== "" ? undefined : eventOf(passed);
  }

  async #push(place: Place, text: string): Promise<string> {
    // a text that came to its end does not go on: what a target still sends of it is left out
    if (place.isEnded) return "";
    place.isBegun = true;
    const passed = await this.#filter.push(place.channel, text);
    place.passed += passed;
    return passed;
  }

  /** A text as a whole; where its pieces came before, what they became. */
  async #full(place: Place, text: string): Promise<string> {
    if (!place.isBegun) await this.#push(place, text);
    await this.#end(place);
    return place.passed;
  }

  async #end(place: Place): Promise<void> {
    if (place.isEnded) return;
    const rest = await this.#filter.end(place.channel);
    place.isEnded = true;
    place.passed += rest;
    if (rest !== "" && place.last !== undefined) this.#before.push(place.last(rest));
  }

  async #endAll(which: (key: string) => boolean): Promise<void> {
    for (const [key, place] of this.#places) if (which(key)) await this.#end(place);
  }

  #place(key: string, kind: TextChannel["kind"]): Place {
    let place = this.#places.get(key);
    if (place === undefined) {
      const channel = { choice: 0, kind, index: this.#places.size };
      this.#places.set(
        key,
        (place = { channel, passed: "", isBegun: false, isEnded: false, last: undefined }),
      );
    }
    return place;
  }
}

/** Texts of `/messages`' blocks, and of their deltas. */
const blockFields = [
  ["text", "content"],
  ["thinking", "reasoning"],
] as const;
const blockDeltaFields = [...blockFields, ["partial_json", "arguments"]] as const;

/** Texts of `/responses`' items other than messages, of parts, and of events that repeat a text. */
const itemFields = ["arguments", "input", "code", "output"] as const;
const partFields = ["text", "refusal", "transcript"] as const;
const fullFields = [...partFields, "arguments", "input", "code"] as const;
const finalResponses: ReadonlySet<string> = new Set(["completed", "incomplete", "failed"]);

function kindOf(name: string): TextChannel["kind"] {
  if (name.startsWith("reasoning")) return "reasoning";
  return /_(?:arguments|input|code|output)$/.test(name) ? "arguments" : "content";
}

/** Whether an answer, or an event of one, is of `/responses` or `/messages`. */
export function isTyped(json: JsonFields): boolean {
  if (Array.isArray(json["choices"])) return false;
  return typeof json["type"] === "string" || Array.isArray(json["output"]) || Array.isArray(json["content"]);
}
