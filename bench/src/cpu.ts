// Octavo beside llama.cpp and node-llama-cpp on the same files, the same threads, in one run: answers first, then every case with
// the contenders taking turns in fresh processes, and the machine's limits measured in between.
import { OctavoError } from "@octavo/protocol";
import { checkPeers } from "./cpu/answers/check-peers.js";
import type { CaseSpec } from "./cpu/case-spec.js";
import { chosenCases, fullName } from "./cpu/cases.js";
import type { Contender, Job, MeasureContext } from "./cpu/contenders/contender.js";
import { findPeers, type Peers } from "./cpu/contenders/find-peers.js";
import { octavo } from "./cpu/contenders/octavo.js";
import { type CpuOptions, parseFlags, usage } from "./cpu/flags.js";
import { measureLimits } from "./cpu/limits.js";
import { type ModelFile, modelFile, warmFileCache } from "./cpu/models/model-file.js";
import { saveResults } from "./cpu/report/results-file.js";
import { type CaseResult, summariseCase } from "./cpu/report/summarise.js";
import { renderCases } from "./cpu/report/table.js";
import { runCase } from "./cpu/run/run-case.js";
import { resultsFolder, thisRun } from "./support/results.js";

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

async function main(args: readonly string[]): Promise<number> {
  if (args.includes("--help")) {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  const options = parseFlags(args, `${resultsFolder}cpu.json`);
  const peers = findPeers(options, say);
  const file = (spec: Pick<CaseSpec, "shape" | "type">): ModelFile =>
    modelFile(options.modelFolder, spec.shape, spec.type, (path, bytes) =>
      say(`writing ${path}, ${(bytes / 1e6).toFixed(0)} MB`),
    );
  if (peers.native.length > 0) {
    for (const type of options.types) {
      await checkPeers(peers, file({ shape: "tiny", type }), options.threads);
      say(`${type}: the same answers`);
    }
  }
  const run = { ...thisRun(), peers: peers.versions };
  const bandwidths: number[] = [];
  const lines: CaseResult[] = [];
  let numFailed = 0;
  for (const spec of chosenCases(options)) {
    say(`\n${fullName(spec)}`);
    const { results, hasFailed } = await measureCase(spec, file(spec), options, peers, bandwidths);
    if (hasFailed) numFailed += 1;
    lines.push(...results);
    if (results.length > 0) say(renderCases(results));
    // After each case, so that an interrupted run keeps what it has.
    if (options.outputPath !== undefined) saveResults(options.outputPath, run, results);
  }
  process.stdout.write(`\n${renderCases(lines)}\n`);
  return numFailed === 0 ? 0 : 1;
}

async function measureCase(
  spec: CaseSpec,
  model: ModelFile,
  options: CpuOptions,
  peers: Peers,
  bandwidths: number[],
): Promise<{ readonly results: CaseResult[]; readonly hasFailed: boolean }> {
  const env = spec.isa === undefined ? {} : { OCTAVO_ISA: spec.isa };
  const context: MeasureContext = { model, threads: options.threads, env };
  warmFileCache(model.path);
  const measured = await runCase({
    job: spec.job,
    contenders: [octavo, ...peersOf(spec, peers)],
    settleJob: (contenders) => jobAtShare(spec, contenders, context),
    repeats: options.repeats,
    context,
    bandwidths,
    measureLimits: () => measureLimits(options.threads, env),
    onSample: ({ contender, measurement, limits }) =>
      say(
        `  ${contender}: ${spec.figures
          .map(({ metric, unit, scale = 1 }) => [measurement[metric], scale, unit] as const)
          .flatMap(([value, scale, unit]) =>
            value === undefined ? [] : `${(value * scale).toFixed(1)} ${unit}`,
          )
          .join(", ")} (memory ${limits.readGBps.toFixed(0)} GB/s)`,
      ),
  });
  for (const [name, error] of measured.failures) say(`  ${name} FAILED: ${error.message}`);
  return {
    results: summariseCase(spec, model, options.threads, measured),
    hasFailed: measured.failures.size > 0,
  };
}

/** A job whose requests arrive at a share of what the slowest contender sustains when all are sent at once. */
async function jobAtShare(
  { job, shareOfCapacity }: CaseSpec,
  contenders: readonly Contender[],
  context: MeasureContext,
): Promise<Job> {
  if (job.kind !== "server" || shareOfCapacity === undefined) return job;
  const rates: number[] = [];
  for (const contender of contenders) {
    const { serverTokensPerSecond = Number.NaN } = await contender.measure(job, context);
    rates.push(serverTokensPerSecond / job.outputTokens);
  }
  const requestsPerSecond = shareOfCapacity * Math.min(...rates);
  say(`  ${requestsPerSecond.toFixed(2)} requests/s`);
  return { ...job, requestsPerSecond };
}

/** The AVX2 cases are for peers that are built without AVX-512. */
function peersOf(spec: CaseSpec, peers: Peers): Contender[] {
  const there = spec.isa === "avx2" ? peers.avx2 : peers.native;
  const wanted: readonly string[] = spec.peers;
  return there.filter((peer) => wanted.includes(peer.name) && peer.supports(spec.job));
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (thrown) {
  say(`octavo: ${OctavoError.from(thrown).message}`);
  process.exitCode = 1;
}
