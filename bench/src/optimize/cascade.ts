import { type EvalCase, functionTarget, type JudgeModel, type Sample, sampleEmbedding } from "@octavo/evals";
import { LLM } from "@octavo/engine";
import { cases as miniCases, type TaskName } from "@octavo/octavo-mini";
import { distilJudge, type JudgedVector } from "@octavo/optimize";
import { embeddedModel } from "../support/served-model.js";
import type { BenchCase } from "../support/results.js";

type Gold = Awaited<ReturnType<typeof answered>>[number];

/** What a judge is asked of octavo-mini's answers. The judges are rules, so that their verdicts are beyond doubt. */
const questions: Readonly<
  Record<string, { readonly tasks: readonly TaskName[]; readonly passes: (one: Gold) => boolean }>
> = {
  "answers rather than declines": {
    tasks: ["grounded", "retrieval", "chat", "tools"],
    passes: ({ text }) =>
      !/^(Not in the passage|Not found|None of my tools|I am a very small model)/.test(text),
  },
  "answers in JSON": {
    tasks: ["extraction", "copying", "grounded"],
    passes: ({ text }) => /^\s*[[{]/.test(text),
  },
  "calls a tool": {
    tasks: ["tools", "chat", "extraction"],
    passes: ({ text }) => text.includes("<tool_call>"),
  },
  "answers exactly right": {
    tasks: ["grounded", "copying", "extraction"],
    passes: ({ text, gold }) => text === gold,
  },
};

/** Judge calls that a classifier on octavo-mini's own embeddings saves, on its answers to its held-out tasks. */
export async function benchCascade(perTask: number): Promise<readonly BenchCase[]> {
  await using llm = await LLM.load(embeddedModel);
  const embedder: JudgeModel = {
    name: "octavo-mini",
    ask: () => Promise.reject(new TypeError("only embeds")),
    embed: async (texts) => (await llm.embed([...texts], { pooling: "mean" })).map((vector) => [...vector]),
  };
  const known = new Map<TaskName, readonly Gold[]>();
  for (const task of ["grounded", "retrieval", "chat", "tools", "extraction", "copying"] as const)
    known.set(task, await answered(llm, embedder, task, perTask));
  const found: BenchCase[] = [];
  for (const [name, { tasks, passes }] of Object.entries(questions)) {
    const rows = tasks
      .flatMap((task) => known.get(task) ?? [])
      .map((one): JudgedVector => ({ ...one, passed: passes(one) }));
    const { classifier, saved, kind, agreementOfAll, numCertified, reason } = distilJudge(rows, {
      imitates: name,
      embeddings: { model: "octavo-mini", dimensions: rows[0]?.vector.length ?? 0 },
      inputs: ["output"],
    });
    found.push({
      name: `judge calls saved: ${name}`,
      unit: "%",
      octavo: 100 * saved,
      target: { atLeast: 80 },
      details: {
        kind,
        agreementOfAll,
        numCertified,
        reason,
        guarantee: classifier?.guarantee,
        numCases: rows.length,
      },
    });
  }
  return found;
}

async function answered(llm: LLM, embedder: JudgeModel, task: TaskName, count: number) {
  const source = miniCases({
    task,
    split: "heldout",
    seed: "cascade",
    ...(task === "retrieval" ? { contextTokens: 256 } : {}),
  });
  const asked = Array.from({ length: count }, () => source.next().value);
  const signal = new AbortController().signal;
  const results: {
    readonly caseId: string;
    readonly text: string;
    readonly gold: string;
    readonly vector: readonly number[];
    readonly cluster: undefined;
  }[] = [];
  for (let start = 0; start < asked.length; start += 64)
    results.push(
      ...(await Promise.all(
        asked.slice(start, start + 64).map(async ({ id, messages, tools, gold }) => {
          const prompt = llm.renderChat({
            messages,
            ...(tools && { tools }),
            addGenerationPrompt: true,
          });
          const { text } = await llm.generate(prompt, {
            temperature: 0,
            maxTokens: 128,
            addSpecialTokens: false,
            skipSpecialTokens: false,
          });
          const plain = text.replace(/<\|im_end\|>\s*$/, "").trim();
          const evalCase = {
            id,
            messages,
            tools: [],
            context: undefined,
            expected: {},
            parameters: {},
            tenant: undefined,
            cluster: undefined,
            tags: [],
            metadata: {},
          } as unknown as EvalCase;
          const answer = await functionTarget("mini", () => plain).answer(evalCase, { signal });
          const sample: Sample = { case: evalCase, answer };
          const vector = await sampleEmbedding(
            sample,
            { inputs: ["output"], embeddings: { model: "octavo-mini" } },
            embedder,
            signal,
          );
          return { caseId: id, text: plain, gold, vector, cluster: undefined };
        }),
      )),
    );
  return results;
}
