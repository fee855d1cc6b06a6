import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { ChatTemplate, Checkpoint, TemplateMessage } from "@octavo/engine";
import { compileChatTemplate, createTokenizer } from "@octavo/engine/parts";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import { OctavoError } from "@octavo/protocol";
import { parseJsonLines } from "../../json-lines.js";
import { invalidOption } from "../options.js";

/** What a card says of the texts. */
export interface CalibrationFacts {
  /** Digest of the file. */
  readonly sha256: string;
  readonly sequences: number;
  readonly tokens: number;
}

export interface CalibrationTexts {
  readonly facts: CalibrationFacts;
  /** Token ids of each sequence. */
  readonly sequences: readonly Int32Array[];
}

interface CalibrationSize {
  /** Most sequences. */
  readonly numSamples: number;
  /** Most tokens in each. */
  readonly sampleTokens: number;
}

/** With fewer tokens the statistics of the inputs are too noisy. */
const leastTokens = 2_048;
const largestFile = 256 * 1024 * 1024;

/**
 * Reads calibration texts: `.jsonl` with a `text`, `prompt` or `messages` per line, else plain text. The texts are laid end to end, each
 * behind what the tokenizer puts before a text, and cut into sequences; of more than are wanted, evenly spread ones are taken.
 * @throws OctavoError `artifact_not_found`, `invalid_option`
 */
export async function readCalibration(
  path: string,
  checkpoint: Checkpoint,
  { numSamples, sampleTokens }: CalibrationSize,
): Promise<CalibrationTexts> {
  checkCount("calibration_samples", numSamples);
  checkCount("calibration_tokens", sampleTokens);
  const bytes = await readBounded(path);
  const tokenizer = createTokenizer(checkpoint.tokenizer);
  const isLines = /\.(?:jsonl|ndjson)$/i.test(path);
  const texts = isLines ? readLines(path, bytes, checkpoint) : [{ text: decode(path, bytes), isChat: false }];
  const ids: number[] = [];
  try {
    for (const { text: one, isChat } of texts) {
      for (const id of await tokenizer.encodeAsync(one, { addSpecialTokens: !isChat })) ids.push(id);
    }
  } finally {
    tokenizer[Symbol.dispose]?.();
  }
  if (ids.length < leastTokens) {
    throw invalidOption(
      "calibration",
      `holds ${ids.length} tokens in ${path}; at least ${leastTokens} are needed, and 16000 or more are better`,
    );
  }
  const { vocabSize, maxPositionEmbeddings } = checkpoint.config;
  const stray = ids.find((id) => id >= vocabSize);
  if (stray !== undefined) {
    throw artifactInvalid(
      checkpoint.path,
      `has a tokenizer that gives the id ${stray}, but an embedding of ${vocabSize} rows`,
    );
  }
  const length = Math.min(sampleTokens, maxPositionEmbeddings, ids.length);
  const whole = Math.floor(ids.length / length);
  const count = Math.min(whole, numSamples);
  const sequences = Array.from({ length: count }, (_, sample) => {
    const start = Math.floor((sample * whole) / count) * length;
    return Int32Array.from(ids.slice(start, start + length));
  });
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { facts: { sha256, sequences: count, tokens: count * length }, sequences };
}

function checkCount(param: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw invalidOption(param, `must be a whole number of at least 1, not ${value}`);
  }
}

async function readBounded(path: string): Promise<Buffer> {
  let size: number;
  try {
    const stats = await stat(path);
    if (!stats.isFile()) throw invalidOption("calibration", `is ${path}, which is not a file`);
    size = stats.size;
  } catch (error) {
    if (error instanceof OctavoError) throw error;
    throw new OctavoError("artifact_not_found", `${path}: no such file (--calibration)`, {
      param: "calibration",
      cause: error,
    });
  }
  if (size > largestFile) {
    throw invalidOption("calibration", `has ${size} bytes in ${path}; at most ${largestFile} are read`);
  }
  return readFile(path);
}

function decode(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidOption("calibration", `is ${path}, which is not UTF-8 text`);
  }
}

interface Text {
  readonly text: string;
  /** Rendered chats hold their special tokens already. */
  readonly isChat: boolean;
}

function readLines(path: string, file: Buffer, checkpoint: Checkpoint): Text[] {
  let template: ChatTemplate | undefined;
  const refuse = (line: number, problem: string): OctavoError =>
    invalidOption("calibration", `has line ${line} of ${path}, which ${problem}`);
  return Array.from(parseJsonLines(file, refuse), ({ line, record }): Text => {
    const { messages, tools, text, prompt } = record;
    if (typeof text === "string") return { text, isChat: false };
    if (typeof prompt === "string") return { text: prompt, isChat: false };
    if (!isMessages(messages)) throw refuse(line, "has neither text, prompt nor messages");
    template ??= templateOf(path, checkpoint);
    const withTools = Array.isArray(tools) ? { tools: tools as unknown[] } : {};
    return { text: template.render({ messages, ...withTools, addGenerationPrompt: false }), isChat: true };
  });
}

function isMessages(value: unknown): value is TemplateMessage[] {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((message: unknown) => typeof (message as { role?: unknown } | null)?.role === "string")
  );
}

function templateOf(path: string, { tokenizer }: Checkpoint): ChatTemplate {
  const { chatTemplate } = tokenizer.config;
  if (chatTemplate === undefined) {
    throw invalidOption("calibration", `has messages in ${path}, but the model has no chat template`);
  }
  return compileChatTemplate(chatTemplate, tokenizer.config);
}
