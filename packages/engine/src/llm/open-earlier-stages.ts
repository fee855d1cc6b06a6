import type { Backend } from "@octavo/kernels";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { artifactDigest } from "@octavo/artifacts/checkpoint/artifact-digest";
import { remoteStages } from "../pipeline/stage-addresses.js";
import { OctavoError } from "@octavo/protocol/errors";
import type { PipelineStages } from "../pipeline/open-pipeline.js";
import type { ResolvedLoadOptions } from "./load-options.js";

/** The stages of the model before this process's own, which is the last of several. Throws `invalid_option`. */
export async function openEarlierStages(
  { info }: Backend,
  checkpoint: Checkpoint,
  {
    maxNumBatchedTokens: maxTokens,
    maxModelLen,
  }: { readonly maxNumBatchedTokens: number; readonly maxModelLen: number },
  options: ResolvedLoadOptions,
): Promise<PipelineStages> {
  const { pipelineParallelSize: count, corruptWeights, enableSleepMode, dtype, quantization } = options;
  if (corruptWeights !== undefined || enableSleepMode || options.backend !== undefined) {
    throw new OctavoError(
      "invalid_option",
      "pipeline_parallel_size: expected 1 with corrupt_weights, enable_sleep_mode or a backend of one's own",
      { param: "pipeline_parallel_size" },
    );
  }
  const { openPipeline } = await import("../pipeline/open-pipeline.js");
  const { path, name } = checkpoint;
  const load = {
    path,
    name,
    quantization: quantization === "auto" ? undefined : quantization,
    numRanks: options.tensorParallelSize,
    numThreads: options.numThreads,
    kernels: options.kernels,
    dtype: dtype === "auto" ? undefined : dtype,
    maxTokens,
    maxModelLen,
    inPlace: options.weightsInPlace,
    kernelFeatures: [info.instructionSet, ...info.features].join(" "),
  };
  const remote = remoteStages(options);
  return openPipeline(load, count, remote && { ...remote, artifactDigest: await artifactDigest(checkpoint) });
}
