import { createHash } from "node:crypto";
import { basename } from "node:path";
import { isRecord } from "@octavo/protocol";
import type { EvalCase } from "../../cases/eval-case.js";
import { type ByteSource, fileSource } from "../byte-source.js";
import { CaseIds } from "../case-ids.js";
import type { Dataset } from "../dataset.js";
import { FieldReader } from "../fields.js";
import { type ArrayElement, readJsonArray } from "../json-array.js";
import { invalidFile, invalidRecord, quoted } from "../place.js";
import { type BenchmarkPrompt, filledPrompt, ownPrompt, readBenchmarkPrompt } from "./benchmark-prompt.js";
import { askForLetter } from "./multiple-choice.js";

/** Fields that tell LongBench v2 from other arrays. */
export const longBenchFields = ["_id", "question", "choice_A", "choice_D", "context", "answer"] as const;

const letters = ["A", "B", "C", "D"] as const;

/**
 * LongBench v2 (Bai et al., 2024, arXiv 2412.15204) from its `data.json`: four options over a document of up to millions
 * of words. The file is one array of hundreds of megabytes and is read element by element. Questions about one document
 * are a cluster. With a file of the benchmark's own prompts (`prompts/0shot.txt`), cases are asked with it.
 */
export function longBenchDataset(
  file: string | ByteSource,
  { prompt: promptPath }: { readonly prompt?: string } = {},
): Dataset {
  const source = typeof file === "string" ? fileSource(file) : file;
  return {
    name: basename(source.path),
    size: undefined,
    async *cases() {
      const prompt =
        promptPath === undefined ? undefined : await readBenchmarkPrompt(promptPath, ["$DOC$", "$Q$"]);
      const ids = new CaseIds();
      let isEmpty = true;
      for await (const element of readJsonArray(source)) {
        isEmpty = false;
        yield longBenchCase(element, ids, prompt);
      }
      if (isEmpty) throw invalidFile(source.path, "holds no cases");
    },
  };
}

function longBenchCase(
  { value, place }: ArrayElement,
  ids: CaseIds,
  prompt: BenchmarkPrompt | undefined,
): EvalCase {
  if (!isRecord(value)) throw invalidRecord(place, undefined, `must be an object, but is ${quoted(value)}`);
  const fields = new FieldReader(value, place);
  const need = (name: string): string => {
    const text = fields.text(name);
    if (text === undefined) throw fields.fail(name, "is missing");
    return text;
  };
  const id = ids.claim(need("_id"), place);
  const question = need("question");
  const options = letters.map((letter) => need(`choice_${letter}`));
  const context = need("context");
  const answer = letters.find((letter) => letter === value["answer"]);
  if (answer === undefined) {
    throw fields.fail("answer", `must be one of A, B, C, D, but is ${quoted(value["answer"])}`);
  }
  const [domain, subDomain] = [fields.text("domain"), fields.text("sub_domain")];
  const [difficulty, length] = [fields.text("difficulty"), fields.text("length")];
  return {
    id,
    messages:
      prompt === undefined
        ? askForLetter(question, options, `Read the text, then answer the question.\n\n${context}\n\n`)
        : [{ role: "user", content: filledPrompt(prompt, placeholders(question, options, context)) }],
    tools: [],
    context,
    expected: { outputs: [answer] },
    parameters: {},
    tenant: undefined,
    cluster: `document:${createHash("sha256").update(context).digest("hex").slice(0, 12)}`,
    tags: [
      ...(domain === undefined ? [] : [domain]),
      ...(difficulty === undefined ? [] : [`difficulty:${difficulty}`]),
      ...(length === undefined ? [] : [`length:${length}`]),
    ],
    metadata: {
      benchmark: "longbench-v2",
      prompt: prompt?.label ?? ownPrompt,
      ...(subDomain !== undefined && { subDomain }),
    },
  };
}

/** As the benchmark's prompts name what is put in. */
function placeholders(
  question: string,
  options: readonly string[],
  context: string,
): Readonly<Record<string, string>> {
  return {
    $DOC$: context.trim(),
    $Q$: question.trim(),
    ...Object.fromEntries(letters.map((letter, index) => [`$C_${letter}$`, options[index]?.trim() ?? ""])),
  };
}
