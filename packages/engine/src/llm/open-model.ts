import { existsSync } from "node:fs";
import { OctavoError } from "@octavo/protocol/errors";
import { given } from "@octavo/protocol/options";
import { resolveModel } from "@octavo/artifacts/hub/resolve-model";
import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import type { LoadOptions } from "./load-options.js";

type OpenModelOptions = Pick<
  LoadOptions,
  "onProgress" | "onWarning" | "signal" | "downloadDir" | "revision"
> & {
  readonly quantization?: string | undefined;
};

/** Finds a model, downloads what is missing of it, and opens it. */
export async function openModel(model: string, options: OpenModelOptions): Promise<Checkpoint> {
  const path = await downloadModel(model, options);
  return openCheckpoint(path, { name: model, quantization: schemeOf(options.quantization) });
}

/** Finds a model's folder or file, and downloads what is missing of it. */
export async function downloadModel(model: string, options: OpenModelOptions): Promise<string> {
  const { onProgress, onWarning, signal, downloadDir } = options;
  const resolved = await resolveModel(withRevision(model, options.revision), {
    ...(onProgress !== undefined && {
      onProgress: (download) =>
        onProgress({
          phase: "downloading",
          doneBytes: download.receivedBytes,
          totalBytes: download.totalBytes,
          download,
        }),
    }),
    ...given({ onWarning, signal }),
    ...(downloadDir !== undefined && { env: { ...process.env, HF_HUB_CACHE: downloadDir } }),
  });
  return resolved.path;
}

/** Reads the files of an opened model anew. */
export function reopen({ path, name }: Checkpoint, quantization: string | undefined): Promise<Checkpoint> {
  return openCheckpoint(path, { name, quantization: schemeOf(quantization) });
}

function schemeOf(quantization: string | undefined): string | undefined {
  return quantization === "auto" ? undefined : quantization;
}

/** "org/name:Q4_K_M" with the revision "v1" is "org/name@v1:Q4_K_M" to the hub; local paths have no revisions. */
function withRevision(model: string, revision: string | undefined): string {
  if (revision === undefined || existsSync(model)) return model;
  const [, repository, rest = ""] = /^([^/@:]+\/[^/@:]+)(.*)$/.exec(model) ?? [];
  if (repository === undefined || rest.startsWith("@")) {
    throw new OctavoError("invalid_option", `A revision cannot be given for "${model}".`, {
      param: "revision",
    });
  }
  return `${repository}@${revision}${rest}`;
}
