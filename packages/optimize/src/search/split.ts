import type { EvalCase } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { type Candidate, questionText } from "../artifact/candidate.js";

/** Cases that a search learns from, chooses by, and is judged on at the end. */
export interface CaseParts {
  readonly train: readonly EvalCase[];
  readonly validation: readonly EvalCase[];
  readonly heldOut: readonly EvalCase[];
}

export interface SplitShares {
  readonly train: number;
  readonly validation: number;
}

const partNames: Readonly<Record<keyof CaseParts, string>> = {
  train: "train",
  validation: "validation",
  heldOut: "held_out",
};

/** Divides cases at random; those of one cluster, and those that ask the same, stay together. */
export function splitCases(cases: readonly EvalCase[], shares: SplitShares, seed: number): CaseParts {
  const groupOf = new Map<string, readonly EvalCase[]>();
  for (const evalCase of cases) {
    const known = new Set(keysOf(evalCase).flatMap((key) => [groupOf.get(key) ?? []]));
    const group = [...[...known].flat(), evalCase];
    for (const one of group) for (const key of keysOf(one)) groupOf.set(key, group);
  }
  const parts = { train: [] as EvalCase[], validation: [] as EvalCase[], heldOut: [] as EvalCase[] };
  for (const group of new Random(seed).shuffle([...new Set(groupOf.values())])) {
    const placed = parts.train.length + parts.validation.length + parts.heldOut.length;
    const lack = {
      train: shares.train * (placed + group.length) - parts.train.length,
      validation: shares.validation * (placed + group.length) - parts.validation.length,
      heldOut: (1 - shares.train - shares.validation) * (placed + group.length) - parts.heldOut.length,
    };
    const [to] = (["heldOut", "validation", "train"] as const).toSorted((a, b) => lack[b] - lack[a]);
    parts[to ?? "train"].push(...group);
  }
  return parts;
}

/** Fewest cases that a part may have. */
const fewestCases = 2;
/** Shorter inputs may stand in a prompt by chance. */
const tellingLength = 24;

/**
 * @throws OctavoError `dataset_invalid` for a part without cases, and for a case of one part that is in another: by its
 *   cluster or by what it asks; also where the prompt or its examples quote a case that is to judge it
 */
export function refuseLeaks(parts: CaseParts, seed: Candidate): void {
  const names = Object.keys(partNames) as (keyof CaseParts)[];
  const seen = new Map<string, { readonly part: keyof CaseParts; readonly id: string }>();
  for (const part of names) {
    if (parts[part].length < fewestCases)
      throw new OctavoError(
        "dataset_invalid",
        `${partNames[part]} has ${parts[part].length} cases; each part needs at least ${fewestCases}`,
        { param: partNames[part] },
      );
    for (const evalCase of parts[part])
      for (const key of keysOf(evalCase)) {
        const earlier = seen.get(key);
        if (earlier === undefined) seen.set(key, { part, id: evalCase.id });
        else if (earlier.part !== part)
          throw leak(evalCase.id, part, `${partNames[earlier.part]} as ${earlier.id}`);
      }
  }
  const texts = [...Object.values(seed.texts), ...seed.shots.map(({ input }) => input)].map(normalised);
  for (const part of ["validation", "heldOut"] as const)
    for (const evalCase of parts[part]) {
      const asked = normalised(questionText(evalCase));
      if (asked.length >= tellingLength && texts.some((text) => text.includes(asked)))
        throw leak(evalCase.id, part, "the prompt or its examples");
    }
}

function leak(id: string, part: keyof CaseParts, where: string): OctavoError {
  return new OctavoError(
    "dataset_invalid",
    `case ${id} of ${partNames[part]} is also in ${where}: what is learned from cannot judge what was learned; remove it from one of them`,
    { param: partNames[part] },
  );
}

function keysOf(evalCase: EvalCase): readonly string[] {
  const asked = evalCase.messages
    .map(({ role, content }) => `${role} ${normalised(content ?? "")}`)
    .join("\n");
  const { tools, context = "" } = evalCase;
  const toolNames = tools.map((tool) => tool.function.name).join(" ");
  return [
    `asks ${asked}\n${normalised(context)}\n${toolNames}`,
    ...(evalCase.cluster === undefined ? [] : [`cluster ${evalCase.cluster}`]),
  ];
}

/** Letters, digits and signs without case and spacing. */
function normalised(text: string): string {
  return text.normalize("NFKC").toLowerCase().replaceAll(/\s+/g, " ").trim();
}
