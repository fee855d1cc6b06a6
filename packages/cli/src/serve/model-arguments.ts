import { existsSync } from "node:fs";
import { embeddedModelName, isEmbeddedModel } from "@octavo/artifacts/hub/local-model";
import { OctavoError } from "@octavo/protocol/errors";

/** A model to serve, and the names that it is served by; none: as the artifact is called. */
export interface ModelArgument {
  readonly source: string;
  readonly names: readonly string[];
}

/**
 * The models of a command line, each as MODEL or NAME=MODEL; without any the embedded one. `servedNames` are those of a single one.
 * @throws OctavoError `invalid_option`
 */
export function modelArguments(
  given: readonly string[],
  servedNames: readonly string[],
): readonly [ModelArgument, ...ModelArgument[]] {
  const [first = embeddedModelName, ...rest] = given;
  const all: readonly [ModelArgument, ...ModelArgument[]] = [
    modelArgument(first),
    ...rest.map(modelArgument),
  ];
  if (servedNames.length === 0) return all;
  if (rest.length > 0 || all[0].names[0] !== (isEmbeddedModel(first) ? first : undefined))
    throw new OctavoError(
      "invalid_option",
      "--served-model-name names one model; write several models as NAME=MODEL, and leave it out",
      { param: "served_model_name" },
    );
  return [{ ...all[0], names: servedNames }];
}

function modelArgument(given: string): ModelArgument {
  const [, name, model] = existsSync(given) ? [] : (/^([^=/\\]+)=(.+)$/.exec(given) ?? []);
  const source = model ?? given;
  const own = isEmbeddedModel(source) ? [source] : [];
  return { source, names: name === undefined ? own : [name] };
}
