import { InvalidArgumentError } from "commander";
import { parseJsonObject } from "./parse.js";

/** vLLM's two ways to name an adapter: NAME=PATH, or a JSON object with `name`, `path` and perhaps `base_model_name`. */
export function collectLora(text: string, earlier: readonly LoraModule[] | undefined): LoraModule[] {
  return [...(earlier ?? []), text.trimStart().startsWith("{") ? loraFromJson(text) : loraFromPair(text)];
}

interface LoraModule {
  readonly name: string;
  readonly path: string;
  readonly baseModelName?: string;
}

function loraFromPair(text: string): LoraModule {
  const [, name, path] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (name === undefined || path === undefined)
    throw new InvalidArgumentError(`expected NAME=PATH or a JSON object, not "${text}".`);
  return { name, path };
}

function loraFromJson(text: string): LoraModule {
  const { name, path, base_model_name: baseModelName, ...rest } = parseJsonObject(text);
  if (typeof name !== "string" || name === "" || typeof path !== "string" || path === "")
    throw new InvalidArgumentError("the JSON object needs `name` and `path`, both text.");
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    throw new InvalidArgumentError(`the JSON object has an unknown field ${unknown}.`);
  if (baseModelName === undefined || baseModelName === null) return { name, path };
  if (typeof baseModelName === "string") return { name, path, baseModelName };
  throw new InvalidArgumentError("base_model_name must be text.");
}
