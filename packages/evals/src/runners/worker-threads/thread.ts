// What runs on each thread of the worker-threads runner: makes evaluators from specs, scores what it is sent.
import { parentPort, workerData } from "node:worker_threads";
import { OctavoError } from "@octavo/protocol";
import type { Evaluator, EvaluatorSpec } from "../../evaluators/evaluator.js";
import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import { scorePair } from "../score-pair.js";
import type { ScoredCase } from "../runner.js";
import type { ThreadData, ThreadReply, ThreadTask } from "./messages.js";

const { modules } = workerData as ThreadData;
const table = loadEvaluatorTable(modules);
const never = new AbortController().signal;
/** By the specs' text: every task of a run has the same. */
const made = new Map<string, readonly Evaluator[]>();

async function evaluatorsOf(specs: readonly EvaluatorSpec[]): Promise<readonly Evaluator[]> {
  const key = JSON.stringify(specs);
  const known = made.get(key);
  if (known !== undefined) return known;
  const evaluators = (await table).create(specs);
  made.set(key, evaluators);
  return evaluators;
}

const send = (reply: ThreadReply): void => parentPort?.postMessage(reply, []);

async function perform({ samples, specs }: ThreadTask): Promise<ThreadReply> {
  try {
    const evaluators = await evaluatorsOf(specs);
    const rows: ScoredCase[] = [];
    for (const sample of samples) {
      for (const evaluator of evaluators) rows.push(await scorePair(sample, evaluator, never));
    }
    return { kind: "rows", rows };
  } catch (thrown) {
    const { code, message } = OctavoError.from(thrown);
    return { kind: "refused", code, message };
  }
}

parentPort?.on("message", (task: ThreadTask) => {
  void perform(task).then(send);
});
// a table that does not load is told to every task
const ready = (): void => send({ kind: "ready" });
void table.then(ready, ready);
