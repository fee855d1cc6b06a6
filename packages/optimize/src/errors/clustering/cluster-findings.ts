import { createHash } from "node:crypto";
import { groupBy, OctavoError } from "@octavo/protocol";
import type { CallFinding, FindingKind } from "../finding.js";
import { hdbscan } from "./hdbscan.js";
import { lexicalDimensions, lexicalVectors, scaledRows, templateOf } from "./lexical-vectors.js";

/** Embeds texts: one row a text. */
export type EmbedTexts = (texts: readonly string[]) => Promise<readonly (readonly number[])[]>;

export interface FindingCluster {
  /** Digest of its kind, its cause, its target and its commonest wording: the same in every order of arrival. */
  readonly id: string;
  readonly kind: FindingKind;
  readonly cause: string;
  /** The commonest wording, with what changes masked. */
  readonly wording: string;
  /** From the first to the last by time. */
  readonly findings: readonly CallFinding[];
}

/** How findings are put together. */
export interface ClusterOptions {
  /** Default: words and pairs of words, hashed. */
  readonly embed?: EmbedTexts | undefined;
  /** Findings are of one cluster where their wordings are nearer than this, as unit vectors. Default 0.75. */
  readonly epsilon?: number;
  /** Wordings of one cause that are clustered exactly; more are assigned to the nearest of these. Default 3000. */
  readonly maxWordings?: number;
}

/** Wordings embedded in one call. */
const batchSize = 256;

/**
 * Clusters findings of one kind, cause and target by how they are worded. What changes from one to the next (numbers, ids, quoted values) is
 * masked first, and equal wordings are one point with a weight, so that a hundred thousand findings of a few causes are a few
 * hundred points. Points are sorted by their text: clusters do not depend on the order of arrival. Every finding is in one
 * cluster; what is like nothing else is a cluster of its own. Throws `target_answer_invalid` where embeddings do not fit together.
 */
export async function clusterFindings(
  findings: readonly CallFinding[],
  { embed, epsilon = 0.75, maxWordings = 3000 }: ClusterOptions = {},
): Promise<readonly FindingCluster[]> {
  const parts = groupBy(findings, ({ kind, cause, target }) => JSON.stringify([kind, cause, target]));
  const clusters: FindingCluster[] = [];
  for (const key of [...parts.keys()].toSorted()) {
    const byWording = groupBy(parts.get(key)!, ({ description }) => templateOf(description));
    // by digest, so that those which are clustered exactly are drawn from all
    const wordings = [...byWording.keys()].toSorted((a, b) => (digestOf(a) < digestOf(b) ? -1 : 1));
    const labels = await labelsOf(wordings, byWording, { embed, epsilon, maxWordings });
    const members = groupBy([...wordings.keys()], (row) => labels[row]!);
    for (const rows of members.values())
      clusters.push(
        clusterOf(
          rows.map((row) => wordings[row]!),
          byWording,
        ),
      );
  }
  return clusters.toSorted((a, b) => b.findings.length - a.findings.length || (a.id < b.id ? -1 : 1));
}

async function labelsOf(
  wordings: readonly string[],
  byWording: ReadonlyMap<string, readonly CallFinding[]>,
  { embed, epsilon, maxWordings }: Required<Omit<ClusterOptions, "embed">> & Pick<ClusterOptions, "embed">,
): Promise<Int32Array> {
  const { values, dimensions } = await vectorsOf(wordings, embed);
  const exact = Math.min(wordings.length, maxWordings);
  const labels = new Int32Array(wordings.length).fill(-1);
  labels.set(
    hdbscan(
      {
        values: values.subarray(0, exact * dimensions),
        dimensions,
        weights: wordings.slice(0, exact).map((wording) => byWording.get(wording)!.length),
      },
      { epsilon },
    ),
  );
  let next = labels.reduce((most, label) => Math.max(most, label), -1) + 1;
  for (let row = 0; row < exact; row++) if (labels[row] === -1) labels[row] = next++;
  for (let row = exact; row < wordings.length; row++) {
    const near = nearestRow(values, dimensions, row, exact);
    labels[row] = near.distance <= epsilon ? labels[near.row]! : next++;
  }
  return labels;
}

async function vectorsOf(
  texts: readonly string[],
  embed: EmbedTexts | undefined,
): Promise<{ readonly values: Float32Array; readonly dimensions: number }> {
  if (embed === undefined) return { values: lexicalVectors(texts), dimensions: lexicalDimensions };
  const rows: (readonly number[])[] = [];
  for (let start = 0; start < texts.length; start += batchSize)
    rows.push(...(await embed(texts.slice(start, start + batchSize))));
  const dimensions = rows[0]?.length ?? 0;
  const odd = rows.find((row) => row.length !== dimensions || !row.every(Number.isFinite));
  if (rows.length !== texts.length || odd !== undefined || dimensions === 0)
    throw new OctavoError(
      "target_answer_invalid",
      `${texts.length} texts have ${rows.length} embeddings, ${odd === undefined ? `of ${dimensions} numbers` : `one of ${odd.length} numbers beside ${dimensions}, or not finite`}.`,
    );
  return { values: scaledRows(Float32Array.from(rows.flat()), dimensions), dimensions };
}

function nearestRow(
  values: Float32Array,
  dimensions: number,
  row: number,
  below: number,
): { readonly row: number; readonly distance: number } {
  let nearest = 0;
  let best = -Infinity;
  const at = row * dimensions;
  for (let other = 0; other < below; other++) {
    let dot = 0;
    for (let i = 0; i < dimensions; i++) dot += values[at + i]! * values[other * dimensions + i]!;
    if (dot > best) [nearest, best] = [other, dot];
  }
  return { row: nearest, distance: Math.sqrt(Math.max(0, 2 - 2 * best)) };
}

function clusterOf(
  wordings: readonly string[],
  byWording: ReadonlyMap<string, readonly CallFinding[]>,
): FindingCluster {
  const countOf = (wording: string) => byWording.get(wording)!.length;
  const [wording] = wordings.toSorted((a, b) => countOf(b) - countOf(a) || (a < b ? -1 : 1));
  const findings = wordings
    .flatMap((each) => byWording.get(each)!)
    .toSorted((a, b) => a.epochMs - b.epochMs || (a.id < b.id ? -1 : 1));
  const { kind, cause, target } = findings[0]!;
  const about = target === undefined ? [] : [target];
  return {
    id: digestOf(JSON.stringify([kind, cause, wording, ...about])).slice(0, 12),
    kind,
    cause,
    wording: wording!,
    findings,
  };
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
