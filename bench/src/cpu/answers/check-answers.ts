import { fileURLToPath } from "node:url";
import { LLM, type LoadOptions } from "@octavo/engine";
import { runMeasured } from "../run/measured-process.js";
import { checkAnswer, checkUnscoredAnswer, type PeerAnswer } from "./near-tie.js";

const script = fileURLToPath(new URL("../../../../tools/oracle/run-llama-cpp.mjs", import.meta.url));

/** What node-llama-cpp answers on a file, from a process of its own. */
export async function nodeLlamaCppAnswer(modelPath: string): Promise<PeerAnswer> {
  const { lines } = await runMeasured({
    command: process.execPath,
    args: [script, "--print", modelPath],
    env: { NODE_LLAMA_CPP_DIR: process.env["NODE_LLAMA_CPP_DIR"] ?? process.cwd() },
  });
  const answer: PeerAnswer = JSON.parse(lines.at(-1) ?? "{}");
  return answer;
}

/** Compares Octavo's greedy answer with a peer's on the same file. Throws `engine_failed` where they differ. */
export async function checkPeerAnswer(
  modelPath: string,
  answer: PeerAnswer,
  loading: LoadOptions = {},
): Promise<void> {
  const { prompt, greedy } = answer;
  const maxModelLen = prompt.length + greedy.length + 8;
  await using llm = await LLM.load(modelPath, { ...loading, maxModelLen });
  const options = { temperature: 0, ignoreEos: true };
  const own = await llm.generate(Int32Array.from(prompt), { ...options, maxTokens: greedy.length });
  const forced = await llm.generate(Int32Array.from([...prompt, ...greedy]), {
    ...options,
    maxTokens: 1,
    promptLogprobs: 1,
  });
  if (answer.top.length === 0) {
    const scores = greedy.map((_, step) => forced.promptLogprobs?.[prompt.length + step]);
    checkUnscoredAnswer(
      greedy,
      scores.map((scored) => (scored?.top[0]?.logprob ?? 0) - (scored?.logprob ?? -Infinity)),
    );
    return;
  }
  const choices = greedy.map((token, step) => {
    const scored = forced.promptLogprobs?.[prompt.length + step];
    return scored?.rank === 1 ? token : (scored?.top[0]?.token ?? -1);
  });
  checkAnswer(answer, own.sequences[0]?.tokens ?? [], choices);
}
