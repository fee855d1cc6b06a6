import type { Measurement } from "../cpu/contenders/contender.js";
import { pythonPeer, pythonPeerVersion, transformers, vllm } from "../cpu/contenders/python-peers.js";
import { modelShapes } from "../cpu/models/shapes.js";
import type { BenchCase } from "../support/results.js";
import type { GpuFlags } from "./flags.js";
import type { GpuJob } from "./measured-model.js";

/** What peers did with a shape, which they do in 16 bits whatever Octavo's weights are. */
const measured = new Map<string, Promise<Measurement>>();

/** Peers that no interpreter was named for, in a line each. */
export function absentPeers({ transformersPython, vllmPython }: GpuFlags): string[] {
  return [[transformers.name, transformersPython] as const, [vllm.name, vllmPython] as const].flatMap(
    ([name, python]) =>
      python === undefined
        ? [`${name}: not measured; --${name} PYTHON names an interpreter that has it`]
        : [],
  );
}

/** The same shape with random weights in 16 bits in peers on the same GPU, and Octavo's figures over theirs. */
export async function peerCases(
  { transformersPython, vllmPython }: GpuFlags,
  job: GpuJob,
  own: readonly BenchCase[],
  onFailure: (name: string, error: unknown) => void,
): Promise<BenchCase[]> {
  if (job.shape === undefined) return [];
  const shape = modelShapes[job.shape];
  const cases: BenchCase[] = [];
  for (const [peer, python] of [
    [transformers, transformersPython],
    [vllm, vllmPython],
  ] as const) {
    if (python === undefined) continue;
    try {
      const version = pythonPeerVersion(peer, python);
      const contender = pythonPeer(peer, python, false);
      const context = { model: { path: job.path, shape }, threads: 1, env: { OCTAVO_BENCH_DEVICE: "cuda" } };
      const add = (name: string, found: Measurement, key: keyof Measurement): void => {
        const mine = own.find((item) => item.name === `${job.name}: ${name}`);
        const theirs = found[key];
        if (mine === undefined || theirs === undefined) return;
        cases.push({
          name: `${job.name}: ${name}, over ${peer.name}`,
          unit: "x",
          octavo: mine.octavo / theirs,
          details: { peer: version, theirs, note: "the peer computes in 16 bits" },
          ...(peer === transformers && { target: { atLeast: 1 } }),
        });
      };
      const once = (task: Parameters<typeof contender.measure>[0]): Promise<Measurement> => {
        const key = `${peer.name} ${shape.name} ${JSON.stringify(task)}`;
        const known = measured.get(key) ?? contender.measure(task, context);
        measured.set(key, known);
        return known;
      };
      for (const streams of job.streams)
        add(
          `decode, ${streams} ${streams === 1 ? "stream" : "streams"}`,
          await once({ kind: "decode", streams, promptTokens: 16, newTokens: job.newTokens }),
          "decodeTokensPerSecond",
        );
      add(
        `prefill of ${job.promptTokens} tokens`,
        await once({ kind: "prefill", promptTokens: job.promptTokens, rounds: 3 }),
        "prefillTokensPerSecond",
      );
    } catch (error) {
      onFailure(`${job.name}, ${peer.name}`, error);
    }
  }
  return cases;
}
