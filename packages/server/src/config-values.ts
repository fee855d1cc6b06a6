import { OctavoError } from "@octavo/protocol/errors";
import { type OptionType, valueType } from "@octavo/protocol/options";
import { tagOf } from "./http/caller.js";

export const replicaName: OptionType<string> = {
  ...valueType.text(),
  expects: "up to 128 letters, digits and characters of _.:@/+=-",
  accepts: (value) => value === "" || tagOf(value) !== undefined,
};

/** What is written as a number is one. */
export const attributeValue: OptionType<string | number> = {
  ...valueType.text(),
  expects: "text or a number",
  accepts: (value) => typeof value === "string" || typeof value === "number",
  parse: (text) => (/^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text),
  show: String,
};

/** Ranges depend on the threshold: `checkDetectorConfig` knows them. */
export const thresholdValue: OptionType<number> = {
  ...valueType.number(),
  accepts: (value) => typeof value === "number",
};

/** A path without its last slash; empty for none. */
export const rootPath: OptionType<string> = {
  ...valueType.text(),
  expects: "a path such as /llm",
  accepts: (value) => typeof value === "string" && (value === "" || /^(\/[^/?#\s]+)+$/.test(value)),
  parse: (text) => {
    const path = text.replace(/\/$/, "");
    if (rootPath.accepts(path)) return path;
    throw new OctavoError("invalid_option", `expected a path such as /llm, not ${JSON.stringify(text)}`);
  },
};

/** As URLs have it, so that what is listed is what is compared. */
export const mediaHost: OptionType<string> = {
  ...valueType.text(),
  expects: "a host such as images.example.com, with its port where that is not 80 or 443",
  accepts: (value) =>
    typeof value === "string" &&
    /^[\w.:[\]-]+$/.test(value) &&
    URL.canParse(`http://${value}`) &&
    new URL(`http://${value}`).host === value.toLowerCase(),
  parse(text) {
    if (mediaHost.accepts(text)) return text;
    throw new OctavoError("invalid_option", `expected ${mediaHost.expects}, not ${JSON.stringify(text)}`);
  },
};

/** vLLM takes them as a JSON list. */
const texts = valueType.list(valueType.text());
export const originList: OptionType<readonly string[]> = {
  ...texts,
  parse(text, earlier) {
    if (!text.startsWith("[")) return texts.parse(text, earlier);
    const items: unknown = parseJson(text);
    if (texts.accepts(items)) return [...(earlier ?? []), ...(items as readonly string[])];
    throw new OctavoError("invalid_option", `expected origins, or a JSON list of them, not ${text}`);
  },
};

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const plainLogLevel = valueType.choice(["trace", "debug", "info", "warn", "error", "fatal", "silent"]);
/** In Python's words too. */
export const logLevel: typeof plainLogLevel = {
  ...plainLogLevel,
  parse(text, earlier) {
    const level = text.toLowerCase();
    const meant = { warning: "warn", critical: "fatal", notset: "trace" }[level];
    return plainLogLevel.parse(meant ?? level, earlier);
  },
};
