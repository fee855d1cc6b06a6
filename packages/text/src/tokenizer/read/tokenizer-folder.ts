import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { z } from "zod";
import { artifactInvalid, artifactUnsupported, readWholeFile } from "../../files/artifact-file.js";
import { parseForm, readJsonFile } from "../../files/bounded-json.js";
import type { TokenizerFileConfig, TokenizerSource } from "../source.js";

const maxTokenizerBytes = 256 * 1024 * 1024;
const maxConfigBytes = 32 * 1024 * 1024;
const maxTemplateBytes = 4 * 1024 * 1024;
const maxTemplates = 64;

/** A special token is written as its text or as an AddedToken object. */
const specialToken = z
  .union([z.string(), z.looseObject({ content: z.string() })])
  .nullish()
  .transform((token) => (typeof token === "object" && token !== null ? token.content : (token ?? undefined)));

const specialTokensSchema = z.looseObject({
  bos_token: specialToken,
  eos_token: specialToken,
  unk_token: specialToken,
  pad_token: specialToken,
});

const chatTemplate = z
  .union([z.string(), z.array(z.looseObject({ name: z.string(), template: z.string() })).max(maxTemplates)])
  .nullish();

const tokenizerConfigSchema = specialTokensSchema.extend({
  chat_template: chatTemplate,
});

/**
 * tokenizer.json with what tokenizer_config.json, special_tokens_map.json and the chat template files say beside it.
 * A template file outranks the one inside tokenizer_config.json, as in transformers.
 */
export function readTokenizerFolder(folder: string): TokenizerSource {
  const path = join(folder, "tokenizer.json");
  const json = readJsonFile(path, maxTokenizerBytes);
  if (json === undefined) {
    const others = ["tokenizer.model", "vocab.json", "tekken.json"].filter((name) =>
      existsSync(join(folder, name)),
    );
    if (others.length > 0) {
      throw artifactUnsupported(
        folder,
        `has ${others.join(", ")} but no tokenizer.json; save the tokenizer in the fast format`,
      );
    }
    throw new OctavoError("artifact_not_found", `${path}: no such file; a tokenizer is needed`);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw artifactInvalid(path, "is not a JSON object");
  return { kind: "tokenizer.json", json, config: readTokenizerConfig(folder) };
}

function readTokenizerConfig(folder: string): TokenizerFileConfig {
  const config = readParsed(join(folder, "tokenizer_config.json"), tokenizerConfigSchema);
  const special = readParsed(join(folder, "special_tokens_map.json"), specialTokensSchema);
  const named = new Map<string, string>();
  let template: string | undefined;
  const take = (given: z.infer<typeof chatTemplate>): void => {
    if (typeof given === "string") template = given;
    else for (const entry of given ?? []) named.set(entry.name, entry.template);
  };
  take(config?.chat_template);
  take(
    readParsed(join(folder, "chat_template.json"), z.looseObject({ chat_template: chatTemplate }))
      ?.chat_template,
  );
  take(readText(join(folder, "chat_template.jinja")));
  const additional = join(folder, "additional_chat_templates");
  if (existsSync(additional)) {
    const files = readdirSync(additional).filter((name) => name.endsWith(".jinja"));
    if (files.length > maxTemplates) throw artifactInvalid(additional, `has ${files.length} templates`);
    for (const name of files) {
      const text = readText(join(additional, name));
      if (text !== undefined) named.set(basename(name, ".jinja"), text);
    }
  }
  template ??= named.get("default");
  named.delete("default");
  return {
    bosToken: config?.bos_token ?? special?.bos_token,
    eosToken: config?.eos_token ?? special?.eos_token,
    unkToken: config?.unk_token ?? special?.unk_token,
    padToken: config?.pad_token ?? special?.pad_token,
    chatTemplate: template,
    namedChatTemplates: named,
  };
}

function readParsed<T>(path: string, schema: z.ZodType<T>): T | undefined {
  const json = readJsonFile(path, maxConfigBytes);
  return json === undefined ? undefined : parseForm(path, json, schema);
}

function readText(path: string): string | undefined {
  const bytes = readWholeFile(path, maxTemplateBytes);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw artifactInvalid(path, "is not valid UTF-8", error);
  }
}
