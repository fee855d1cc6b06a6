import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ToolDefinition } from "@octavo/evals";
import {
  asArray,
  asRecord,
  asString,
  isRecord,
  OctavoError,
  systemProblem,
  parseJson,
} from "@octavo/protocol";
import {
  type Candidate,
  described,
  describedTool,
  descriptionsOf,
  type Shot,
  type TunedPart,
} from "./candidate.js";
import { fileDiff } from "./line-diff.js";

/** Files that hold what may be changed; paths as the configuration writes them. */
export interface TunedPaths {
  readonly prompt?: string | undefined;
  /** JSON: the tools of a request. */
  readonly tools?: string | undefined;
  /** JSON: a schema of answers. */
  readonly schema?: string | undefined;
  /** JSON lines of `input`, `output` and `reasoning`; need not be there yet. */
  readonly examples?: string | undefined;
}

interface ReadFiles {
  readonly prompt: string | undefined;
  readonly tools: { readonly text: string; readonly value: readonly ToolDefinition[] } | undefined;
  readonly schema: { readonly text: string; readonly value: Readonly<Record<string, unknown>> } | undefined;
  readonly examples: string;
}

/** What stands in files today, and what they would be under another candidate. */
export class TunedFiles {
  readonly seed: Candidate;
  readonly parts: readonly TunedPart[];
  readonly #paths: TunedPaths;
  readonly #read: ReadFiles;

  private constructor(paths: TunedPaths, read: ReadFiles) {
    this.#paths = paths;
    this.#read = read;
    this.parts = [
      ...(read.prompt === undefined ? [] : [{ id: "prompt", text: read.prompt.trimEnd() }]),
      ...(read.tools?.value ?? []).flatMap((tool) => [
        ...(tool.function.description === undefined
          ? []
          : [{ id: `tool:${tool.function.name}`, text: tool.function.description }]),
        ...descriptionsOf(tool.function.parameters, `tool:${tool.function.name}:`),
      ]),
      ...(read.schema === undefined ? [] : descriptionsOf(read.schema.value, "schema:")),
    ];
    this.seed = {
      texts: Object.fromEntries(this.parts.map(({ id, text }) => [id, text])),
      shots: shotsIn(read.examples, paths.examples ?? ""),
    };
  }

  /** @throws OctavoError `invalid_option` that names the file which is missing or not what it should be */
  static async read(paths: TunedPaths, folder: string): Promise<TunedFiles> {
    const textOf = async (key: keyof TunedPaths): Promise<string | undefined> => {
      const path = paths[key];
      if (path === undefined) return undefined;
      try {
        return await readFile(resolve(folder, path), "utf8");
      } catch (cause) {
        if (key === "examples" && isRecord(cause) && cause["code"] === "ENOENT") return "";
        throw problem(key, path, `cannot be read: ${systemProblem(cause)}`, cause);
      }
    };
    const [prompt, tools, schema, examples] = [
      await textOf("prompt"),
      await textOf("tools"),
      await textOf("schema"),
      await textOf("examples"),
    ];
    const files = new TunedFiles(paths, {
      prompt,
      tools: tools === undefined ? undefined : { text: tools, value: toolsIn(tools, paths.tools ?? "") },
      schema:
        schema === undefined ? undefined : { text: schema, value: schemaIn(schema, paths.schema ?? "") },
      examples: examples ?? "",
    });
    if (files.parts.length === 0)
      throw new OctavoError(
        "invalid_option",
        "files: nothing to optimise: name a prompt, or tools or a schema with descriptions",
        { param: "files" },
      );
    return files;
  }

  /** Whether found examples have a file. */
  get keepsExamples(): boolean {
    return this.#paths.examples !== undefined;
  }

  /** New contents by path, of the files that a candidate changes. */
  contentsOf({
    texts,
    shots,
  }: Candidate): ReadonlyMap<string, { readonly before: string; readonly after: string }> {
    const { prompt, tools, schema, examples } = this.#read;
    const changed = new Map<string, { readonly before: string; readonly after: string }>();
    const add = (path: string | undefined, before: string | undefined, after: string | undefined): void => {
      if (path !== undefined && before !== undefined && after !== undefined && before !== after)
        changed.set(path, { before, after });
    };
    const sameEnd = (before: string, text: string): string => text + (/\s*$/.exec(before)?.[0] ?? "");
    const written = texts["prompt"];
    add(
      this.#paths.prompt,
      prompt,
      prompt === undefined || written === undefined ? undefined : sameEnd(prompt, written),
    );
    if (tools !== undefined)
      add(
        this.#paths.tools,
        tools.text,
        jsonLike(
          tools.text,
          tools.value.map((tool) => describedTool(tool, texts)),
        ),
      );
    if (schema !== undefined)
      add(this.#paths.schema, schema.text, jsonLike(schema.text, described(schema.value, "schema:", texts)));
    const isChanged = JSON.stringify(shots) !== JSON.stringify(this.seed.shots);
    if (isChanged)
      add(this.#paths.examples, examples, shots.map((shot) => `${JSON.stringify(shot)}\n`).join(""));
    return changed;
  }

  /** In the unified format that `git apply` takes; empty where nothing changes. */
  diffOf(candidate: Candidate): string {
    return [...this.contentsOf(candidate)]
      .map(([path, { before, after }]) => fileDiff(path, before, after))
      .join("");
  }

  async write(candidate: Candidate, folder: string): Promise<readonly string[]> {
    const contents = this.contentsOf(candidate);
    for (const [path, { after }] of contents) await writeFile(resolve(folder, path), after);
    return [...contents.keys()];
  }
}

/** JSON with the indentation and the end of the file that it replaces; the same text where nothing changed. */
function jsonLike(before: string, value: unknown): string {
  if (JSON.stringify(parseJson(before)?.value) === JSON.stringify(value)) return before;
  const indent = /\n([ \t]+)\S/.exec(before)?.[1] ?? "";
  return JSON.stringify(value, undefined, indent) + (before.endsWith("\n") ? "\n" : "");
}

function toolsIn(text: string, path: string): readonly ToolDefinition[] {
  const tools = parseJson(text)?.value;
  const isTool = (tool: unknown): tool is ToolDefinition =>
    asRecord(tool)["type"] === "function" && typeof asRecord(asRecord(tool)["function"])["name"] === "string";
  if (!Array.isArray(tools) || !asArray(tools).every(isTool))
    throw problem(
      "tools",
      path,
      "expected a JSON array of tools as a request has them: {type: function, function: {name}}",
    );
  return tools as readonly ToolDefinition[];
}

function schemaIn(text: string, path: string): Readonly<Record<string, unknown>> {
  const schema = parseJson(text)?.value;
  if (isRecord(schema)) return schema;
  throw problem("schema", path, "expected a JSON schema");
}

function shotsIn(text: string, path: string): readonly Shot[] {
  return text
    .split("\n")
    .flatMap((line, index) => (line.trim() === "" ? [] : [{ line, number: index + 1 }]))
    .map(({ line, number }) => {
      const fields = asRecord(parseJson(line)?.value);
      const [input, output, reasoning, caseId] = ["input", "output", "reasoning", "caseId"].map((key) =>
        asString(fields[key]),
      );
      if (input === undefined || output === undefined)
        throw problem("examples", path, `line ${number}: expected {"input": ..., "output": ...}`);
      return {
        ...(caseId === undefined ? {} : { caseId }),
        input,
        output,
        ...(reasoning === undefined ? {} : { reasoning }),
      };
    });
}

function problem(key: string, path: string, message: string, cause?: unknown): OctavoError {
  return new OctavoError("invalid_option", `files.${key}: ${path}: ${message}`, {
    param: `files.${key}`,
    cause,
  });
}
