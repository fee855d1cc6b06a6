import { OctavoError } from "@octavo/protocol/errors";
import { parseSplitName, splitFileName } from "../gguf/checkpoint.js";
import type { ModelReference } from "./model-reference.js";

/** Shell-style patterns over repository paths, as in Python's snapshot_download: `*` also matches `/`. */
export interface FilePatterns {
  readonly allow?: readonly string[];
  readonly ignore?: readonly string[];
}

/** Which of a repository's files make the model. */
export type FileSelection =
  | {
      readonly kind: "folder";
      readonly files: readonly string[];
      /** The safetensors index among `files`, whose shards are still to be added. */
      readonly index: string | undefined;
    }
  | {
      readonly kind: "gguf";
      readonly files: readonly string[];
      /** The file to open: the only one, or the first of a split set. */
      readonly entry: string;
    };

const safetensorsIndex = "model.safetensors.index.json";

const configFiles: ReadonlySet<string> = new Set([
  "config.json",
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "chat_template.json",
  "chat_template.jinja",
  "preprocessor_config.json",
  "processor_config.json",
]);

/** What a llama.cpp user would want when nothing is said: small first, as good as it gets within reason. */
const preferredQuantizations = [
  "Q4_K_M",
  "Q4_K_S",
  "Q5_K_M",
  "Q8_0",
  "Q6_K",
  "Q5_K_S",
  "Q4_0",
  "Q5_0",
  "BF16",
  "F16",
  "F32",
];

/**
 * Safetensors are preferred; a repository without them is taken for its GGUF files.
 * @throws OctavoError `artifact_not_found` when the files asked for are not there, `artifact_unsupported` for pickles alone
 */
export function selectFiles(
  reference: ModelReference,
  listed: readonly string[],
  patterns: FilePatterns = {},
): FileSelection {
  const files = listed.filter((file) => admitted(file, patterns));
  const { repository } = reference;
  if (reference.file !== undefined) {
    if (!files.includes(reference.file)) throw missing(`${repository} has no file ${reference.file}`, files);
    return ggufSelection(repository, reference.file, files);
  }
  if (reference.quantization === undefined) {
    const configs = files.filter(
      (file) => configFiles.has(file) || /^additional_chat_templates\/[^/]+\.jinja$/.test(file),
    );
    if (files.includes("model.safetensors")) {
      return { kind: "folder", files: [...configs, "model.safetensors"], index: undefined };
    }
    if (files.includes(safetensorsIndex)) {
      return { kind: "folder", files: [...configs, safetensorsIndex], index: safetensorsIndex };
    }
    const whole = files.filter((file) => /^[^/]+\.safetensors$/.test(file));
    const [only] = whole;
    if (only !== undefined && whole.length === 1 && files.includes("config.json")) {
      return { kind: "folder", files: [...configs, only], index: undefined };
    }
  }
  return ggufSelection(repository, chooseGguf(reference, files), files);
}

/** What PEFT saves of an adapter. Throws as `selectFiles` does. */
export function selectAdapterFiles(
  { repository }: ModelReference,
  listed: readonly string[],
): FileSelection & { readonly kind: "folder" } {
  const files = ["adapter_config.json", "adapter_model.safetensors"];
  const absent = files.find((file) => !listed.includes(file));
  if (absent === undefined) return { kind: "folder", files, index: undefined };
  if (listed.includes("adapter_model.bin")) {
    throw new OctavoError(
      "artifact_unsupported",
      `${repository} has only a pickled adapter, which can run code when read; look for one saved as safetensors`,
    );
  }
  throw missing(`${repository} is no LoRA adapter: it has no file ${absent}`, listed);
}

function chooseGguf(reference: ModelReference, files: readonly string[]): string {
  const { repository, quantization } = reference;
  const models = files.filter((file) => {
    const name = baseName(file);
    return /\.gguf$/i.test(name) && !/^mmproj/i.test(name) && (parseSplitName(name)?.index ?? 1) === 1;
  });
  if (models.length === 0) {
    if (files.some((file) => /\.(?:bin|pth?|pkl)$/.test(file))) {
      throw new OctavoError(
        "artifact_unsupported",
        `${repository} has only pickled weights, which can run code when read; look for a safetensors or GGUF conversion of it`,
      );
    }
    throw missing(`${repository} has no safetensors and no GGUF weights`, files);
  }
  const bearing = (wanted: string): string[] => models.filter((file) => carries(file, wanted));
  if (quantization !== undefined) {
    const matches = bearing(quantization);
    const [match] = matches;
    if (match === undefined) throw missing(`${repository} has no GGUF file of ${quantization}`, models);
    if (matches.length > 1)
      throw missing(`${repository} has several GGUF files of ${quantization}; name one`, matches);
    return match;
  }
  const [first] = models;
  if (first !== undefined && models.length === 1) return first;
  for (const wanted of preferredQuantizations) {
    const [match, second] = bearing(wanted);
    if (match !== undefined && second === undefined) return match;
  }
  throw missing(`${repository} has several GGUF files; name one`, models);
}

/** The quantisation as a word of its own in the path: Q4_K is not part of Q4_K_M. */
function carries(file: string, quantization: string): boolean {
  const escaped = quantization.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`(?:^|[^A-Za-z0-9])${escaped}(?![A-Za-z0-9]|_[A-Za-z0-9])`, "i").test(
    file.replace(/\.gguf$/i, ""),
  );
}

function ggufSelection(repository: string, file: string, files: readonly string[]): FileSelection {
  const split = parseSplitName(baseName(file));
  if (split === undefined) return { kind: "gguf", files: [file], entry: file };
  const folder = file.slice(0, file.length - baseName(file).length);
  if (split.count < 1 || split.count > 4096)
    throw missing(`${repository} has a split model of ${split.count} parts`, [file]);
  const parts = Array.from({ length: split.count }, (_, index) => folder + splitFileName(split, index + 1));
  const absent = parts.find((name) => !files.includes(name));
  if (absent !== undefined) throw missing(`${repository} lacks ${absent}, part of a split model`, files);
  return { kind: "gguf", files: parts, entry: parts[0] ?? file };
}

function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function missing(problem: string, files: readonly string[]): OctavoError {
  const shown = files.toSorted().slice(0, 20).join(", ");
  const rest = files.length > 20 ? `, and ${files.length - 20} more` : "";
  return new OctavoError(
    "artifact_not_found",
    `${problem} (there are: ${shown === "" ? "no files" : shown}${rest})`,
  );
}

function admitted(file: string, patterns: FilePatterns): boolean {
  const matches = (pattern: string): boolean => globExpression(pattern).test(file);
  if (patterns.allow !== undefined && !patterns.allow.some(matches)) return false;
  return !(patterns.ignore ?? []).some(matches);
}

function globExpression(pattern: string): RegExp {
  const source = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    .replaceAll(/\*+/g, "[^]*")
    .replaceAll("?", "[^]");
  return new RegExp(`^${source}$`);
}
