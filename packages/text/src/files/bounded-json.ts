import type { z } from "zod";
import { artifactInvalid, readWholeFile } from "./artifact-file.js";

const maxDepth = 64;

interface JsonLimits {
  /** Refuse objects in which a name occurs twice; JavaScript's parser would keep the last one without a word. */
  readonly uniqueNames?: boolean;
}

/**
 * JSON from an untrusted file: strict UTF-8, at most 64 levels deep (checked before anything is built).
 * @throws OctavoError `artifact_invalid`, naming `path`
 */
export function parseArtifactJson(bytes: Uint8Array, path: string, limits: JsonLimits = {}): unknown {
  const shape = scan(bytes);
  if (shape.depth > maxDepth) throw artifactInvalid(path, `nests more than ${maxDepth} levels of JSON`);
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw artifactInvalid(path, "holds JSON that is not valid UTF-8", error);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw artifactInvalid(
      path,
      `holds invalid JSON (${error instanceof Error ? error.message : "unreadable"})`,
      error,
    );
  }
  if (limits.uniqueNames === true && countNames(value) !== shape.names) {
    const name = firstDuplicate(bytes);
    throw artifactInvalid(path, name === undefined ? "has a name twice in one object" : `has ${name} twice`);
  }
  return value;
}

/** As `parseArtifactJson` for a file of at most `maxBytes`; undefined when there is no such file. */
export function readJsonFile(path: string, maxBytes: number): unknown {
  const bytes = readWholeFile(path, maxBytes);
  return bytes === undefined ? undefined : parseArtifactJson(bytes, path);
}

/** `json` in the form `schema` asks for; the error names the file and the field at fault. */
export function parseForm<T>(path: string, json: unknown, schema: z.ZodType<T>): T {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue === undefined || issue.path.length === 0 ? "the file" : issue.path.join(".");
  throw artifactInvalid(path, `${field}: ${issue?.message ?? "has an unexpected form"}`, parsed.error);
}

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;

/**
 * Deepest nesting and number of `"name":` pairs, in one pass and without recursion; `onName` gets each name's bytes, quotes
 * included, and the level of its object. Meaningful for valid JSON only.
 */
function scan(
  bytes: Uint8Array,
  onName?: (start: number, end: number, level: number) => void,
): { depth: number; names: number } {
  let level = 0;
  let depth = 0;
  let names = 0;
  let start = 0;
  let end = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      start = at;
      for (at++; at < bytes.length && bytes[at] !== quote; at++) if (bytes[at] === backslash) at++;
      end = at + 1;
    } else if (byte === colon) {
      names++;
      onName?.(start, end, level);
    } else if (byte === 0x7b || byte === 0x5b) {
      if (++level > depth) depth = level;
    } else if (byte === 0x7d || byte === 0x5d) {
      level--;
    }
  }
  return { depth, names };
}

function countNames(value: unknown): number {
  if (Array.isArray(value)) return value.reduce((sum: number, item: unknown) => sum + countNames(item), 0);
  if (typeof value !== "object" || value === null) return 0;
  let names = 0;
  for (const item of Object.values(value)) names += 1 + countNames(item);
  return names;
}

/** Looks among the outermost object's names, as they are written. */
function firstDuplicate(bytes: Uint8Array): string | undefined {
  const seen = new Set<string>();
  let duplicate: string | undefined;
  scan(bytes, (start, end, level) => {
    if (level !== 1) return;
    const name = new TextDecoder().decode(bytes.subarray(start, end));
    if (seen.has(name)) duplicate ??= name.slice(0, 200);
    seen.add(name);
  });
  return duplicate;
}
