import { ax, AxGEPA, AxMockAIService } from "@ax-llm/ax";
import type { EvalCase } from "@octavo/evals";
import { applyCandidate, optimizePrompts } from "@octavo/optimize";
import { type RulesTask, rulesTask } from "@octavo/optimize/testing/rules-task";
import type { BenchCase } from "../support/results.js";

const sizes = { train: 48, validation: 30, heldOut: 60 };
const metricCalls = 500;

/** GEPA of both libraries on the same tasks, with the same scripted target and teacher; Octavo gets the calls that ax made. */
export async function benchAgainstAx(seeds: number): Promise<readonly BenchCase[]> {
  const rows: {
    readonly seed: number;
    readonly octavo: number;
    readonly ax: number;
    readonly calls: number;
  }[] = [];
  for (let seed = 1; seed <= seeds; seed += 1) {
    const task = rulesTask({ seed, sizes });
    const peer = await axPrompt(task, seed);
    const own = await optimizePrompts({
      ...task,
      teacher: { model: task.teacher },
      optimizer: { name: "gepa" },
      budget: { calls: peer.calls },
      randomSeed: seed,
    });
    rows.push({
      seed,
      octavo: task.expectedScore(own.winner),
      ax: task.expectedScore({ texts: { prompt: peer.prompt }, shots: [] }),
      calls: peer.calls,
    });
  }
  const difference = rows.reduce((sum, row) => sum + row.octavo - row.ax, 0) / rows.length;
  return [
    {
      name: "GEPA less ax's GEPA, mean true score, same tasks, target, teacher and calls",
      unit: "points",
      octavo: 100 * difference,
      target: { atLeast: 0 },
      details: { seeds: rows, notWorse: rows.filter(({ octavo, ax: other }) => octavo >= other).length },
    },
  ];
}

async function axPrompt(
  task: RulesTask,
  seed: number,
): Promise<{ readonly prompt: string; readonly calls: number }> {
  let calls = 0;
  const { signal } = new AbortController();
  const all = [...task.cases.train, ...task.cases.validation];
  const byQuestion = new Map(all.map((one) => [one.messages[0]?.content ?? "", one]));
  const reply = (content: string) => ({
    results: [{ index: 0, content, finishReason: "stop" as const }],
    modelUsage: {
      ai: "scripted",
      model: "scripted",
      tokens: { promptTokens: 1, completionTokens: 1, totalTokens: 2 },
    },
  });
  const features = { functions: false, streaming: false };
  const studentAI = new AxMockAIService<string>({
    features,
    async chatResponse(request: unknown) {
      calls += 1;
      const [system = "", user = ""] = textsOf(request);
      const evalCase = byQuestion.get(/Question: (.*)/.exec(user)?.[1]?.trim() ?? "");
      if (evalCase === undefined) return reply("Final Answer: unknown question");
      const candidate = { texts: { prompt: system }, shots: [] };
      const { text } = await task.target.answer({ ...applyCandidate(candidate, evalCase) }, { signal });
      return reply(`Final Answer: ${text}`);
    },
  });
  const teacherAI = new AxMockAIService<string>({
    features,
    async chatResponse(request: unknown) {
      calls += 1;
      const [system = "", user = ""] = textsOf(request);
      if (system.includes("feedbackSummary")) {
        const said = [...user.matchAll(/needs rule \d+/g)].map(([found]) => found);
        return reply(`Feedback Summary: ${said.join(", ") || "fine"}`);
      }
      const [, current = ""] = /Current Value: ([\s\S]*?)\n\nFeedback Summary:/.exec(user) ?? [];
      const [, summary = ""] = /Feedback Summary: (.*)/.exec(user) ?? [];
      const question = `The prompt:\n===\n${current}\n===\n\n${summary}\n\nWrite it between <text> and </text>.`;
      const written = await task.teacher.answer(asked(question, calls), { signal });
      return reply(`New Value: ${/<text>([\s\S]*?)<\/text>/.exec(written.text)?.[1] ?? current}`);
    },
  });
  const program = ax('"Answer the question." question:string -> finalAnswer:string');
  const optimizer = new AxGEPA({
    studentAI,
    teacherAI,
    numTrials: 10_000,
    earlyStoppingTrials: 10_000,
    minibatchSize: 3,
    seed,
  });
  const examplesOf = (cases: readonly EvalCase[]) =>
    cases.map((one) => ({
      question: one.messages[0]?.content ?? "",
      finalAnswer: one.expected.outputs?.[0] ?? "",
    }));
  const kindOf = (example: unknown): string =>
    String((example as { finalAnswer?: string }).finalAnswer).replace("answer ", "");
  const result = await optimizer.compile(
    program,
    examplesOf(task.cases.train),
    (({ prediction, example }: { prediction: { finalAnswer?: string }; example: { finalAnswer?: string } }) =>
      Number(prediction.finalAnswer === example.finalAnswer)) as never,
    {
      validationExamples: examplesOf(task.cases.validation) as never,
      feedbackFn: ({ prediction, example }) =>
        (prediction as { finalAnswer?: string }).finalAnswer === `answer ${kindOf(example)}`
          ? "as it should be"
          : `needs rule ${kindOf(example)}`,
      maxMetricCalls: metricCalls,
      bootstrap: false,
    },
  );
  const { componentMap = {} } = (result.optimizedProgram ?? {}) as {
    readonly componentMap?: Readonly<Record<string, string>>;
  };
  return { prompt: Object.values(componentMap).join("\n"), calls };
}

function textsOf(request: unknown): readonly string[] {
  const { chatPrompt } = request as { readonly chatPrompt: readonly { readonly content?: unknown }[] };
  return chatPrompt.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
}

function asked(question: string, seed: number): EvalCase {
  return {
    id: "teacher",
    messages: [{ role: "user", content: question }],
    tools: [],
    context: undefined,
    expected: {},
    parameters: { seed },
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: {},
  };
}
