import { type EvalCase, functionTarget, type JudgeModel, type Sample, sampleEmbedding } from "@octavo/evals";
import { LLM } from "@octavo/engine";
import { cases as miniCases, type TaskName } from "@octavo/octavo-mini";
import { distilJudge, type JudgedVector } from "@octavo/optimize";
import { embeddedModel } from "../support/served-model.js";
import type { BenchCase } from "../support/results.js";

type Gold = Awaited<ReturnType<typeof answered>>[number];

/** What a judge is asked of octavo-mini's answers. The judges are rules, so that their verdicts are beyond doubt. */
const questions: Readonly<
  Record<
    string,
    {
      readonly tasks: readonly TaskName[];
      readonly passes: (one: Gold) => boolean;
      /** The judge, and what imitates it, sees the expected answer too. */
      readonly seesExpected?: boolean;
    }
  >
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
    seesExpected: true,
  },
};

const inputsOf = (seesExpected: boolean) =>
  seesExpected ? (["output", "expectedOutput"] as const) : (["output"] as const);

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
  for (const [name, { tasks, passes, seesExpected = false }] of Object.entries(questions)) {
    const inputs = [...inputsOf(seesExpected)];
    const rows = tasks
      .flatMap((task) => known.get(task) ?? [])
      .map((one): JudgedVector => ({
        ...one,
        vector: one.vectors[Number(seesExpected)]!,
        passed: passes(one),
      }));
    const { classifier, saved, kind, agreementOfAll, numCertified, reason } = distilJudge(rows, {
      imitates: name,
      embeddings: { model: "octavo-mini", dimensions: known.get("chat")?.[0]?.vectors[0]?.length ?? 0 },
      inputs,
      differences: seesExpected,
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
        inputs,
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
    /** Of the output alone, and with the expected answer. */
    readonly vectors: readonly (readonly number[])[];
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
            expected: { outputs: [gold] },
            parameters: {},
            tenant: undefined,
            cluster: undefined,
            tags: [],
            metadata: {},
          } as unknown as EvalCase;
          const answer = await functionTarget("mini", () => plain).answer(evalCase, { signal });
          const sample: Sample = { case: evalCase, answer };
          const vectors = await Promise.all(
            [false, true].map((seesExpected) =>
              sampleEmbedding(
                sample,
                {
                  inputs: [...inputsOf(seesExpected)],
                  embeddings: { model: "octavo-mini" },
                  differences: seesExpected,
                },
                embedder,
                signal,
              ),
            ),
          );
          return { caseId: id, text: plain, gold, vectors, cluster: undefined };
        }),
      )),
    );
  return results;
}
