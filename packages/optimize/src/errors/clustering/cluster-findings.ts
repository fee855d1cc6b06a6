import { createHash } from "node:crypto";
import { groupBy, OctavoError } from "@octavo/protocol";
import type { CallFinding, FindingKind } from "../finding.js";
import { hdbscan } from "./hdbscan.js";
import { lexicalDimensions, lexicalVectors, scaledRows, templateOf } from "./lexical-vectors.js";

/** Embeds texts: one row a text. */
export type EmbedTexts = (texts: readonly string[]) => Promise<readonly (readonly number[])[]>;

/** Findings that are taken for one cause. */
export interface FindingCluster {
  /** Digest of its kind, its cause, its target and its commonest wording: the same in every order of arrival. */
  readonly id: string;
  readonly kind: FindingKind;
  readonly cause: string;
  /** The commonest wording, with what changes masked. */
  readonly wording: string;
  /** Different wordings, and the share of the findings that have the commonest one. */
  readonly numWordings: number;
  readonly commonestShare: number;
  /**
   * How far findings are from the commonest wording, on average: 0 where all are worded so, sqrt(2) where none of them shares a
   * word with it (of embeddings: is at a right angle to it).
   */
  readonly spread: number;
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
  /** Remembers how wordings were clustered; default: nothing does. */
  readonly recall?: Recall;
}

/** A value of JSON, made by `make` where it is not known yet for this content. */
export type Recall = <Value>(content: string, make: () => Promise<Value>) => Promise<Value>;

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
  { embed, epsilon = 0.75, maxWordings = 3000, recall = (_, make) => make() }: ClusterOptions = {},
): Promise<readonly FindingCluster[]> {
  const parts = groupBy(findings, ({ kind, cause, target }) => JSON.stringify([kind, cause, target]));
  const clusters: FindingCluster[] = [];
  for (const key of [...parts.keys()].toSorted()) {
    const byWording = groupBy(parts.get(key)!, ({ description }) => templateOf(description));
    // by digest, so that those which are clustered exactly are drawn from all
    const wordings = [...byWording.keys()]
      .map((text) => ({ text, digest: digestOf(text) }))
      .toSorted((a, b) => (a.digest < b.digest ? -1 : 1))
      .map(({ text }) => text);
    const weights = wordings.map((wording) => byWording.get(wording)!.length);
    const content = JSON.stringify([
      epsilon,
      maxWordings,
      wordings.map((wording, row) => [wording, weights[row]]),
    ]);
    const groups = await recall(content, () => groupsOf(wordings, weights, { embed, epsilon, maxWordings }));
    for (const { rows, spread } of groups)
      clusters.push(
        clusterOf(
          rows.map((row) => wordings[row]!),
          byWording,
          spread,
        ),
      );
  }
  return clusters.toSorted((a, b) => b.findings.length - a.findings.length || (a.id < b.id ? -1 : 1));
}

/** Rows of wordings that are one cluster, the commonest first, and how far their findings are from that. */
interface Group {
  readonly rows: readonly number[];
  readonly spread: number;
}

async function groupsOf(
  wordings: readonly string[],
  weights: readonly number[],
  {
    embed,
    epsilon,
    maxWordings,
  }: Required<Pick<ClusterOptions, "epsilon" | "maxWordings">> & Pick<ClusterOptions, "embed">,
): Promise<readonly Group[]> {
  const { values, dimensions } = await vectorsOf(wordings, embed);
  const exact = Math.min(wordings.length, maxWordings);
  const labels = new Int32Array(wordings.length).fill(-1);
  labels.set(
    hdbscan(
      { values: values.subarray(0, exact * dimensions), dimensions, weights: weights.slice(0, exact) },
      { epsilon },
    ),
  );
  let next = labels.reduce((most, label) => Math.max(most, label), -1) + 1;
  for (let row = 0; row < exact; row++) if (labels[row] === -1) labels[row] = next++;
  for (let row = exact; row < wordings.length; row++) {
    const near = nearestRow(values, dimensions, row, exact);
    labels[row] = near.distance <= epsilon ? labels[near.row]! : next++;
  }
  return [...groupBy([...wordings.keys()], (row) => labels[row]!).values()].map((members) => {
    const rows = members.toSorted(
      (a, b) => weights[b]! - weights[a]! || (wordings[a]! < wordings[b]! ? -1 : 1),
    );
    const total = rows.reduce((sum, row) => sum + weights[row]!, 0);
    const far = rows
      .slice(1)
      .reduce((sum, row) => sum + weights[row]! * distanceOf(values, dimensions, rows[0]!, row), 0);
    return { rows, spread: far / total };
  });
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
  for (let other = 0; other < below; other++) {
    const dot = product(values, dimensions, row, other);
    if (dot > best) [nearest, best] = [other, dot];
  }
  return { row: nearest, distance: distanceOf(values, dimensions, row, nearest) };
}

function product(values: Float32Array, dimensions: number, first: number, second: number): number {
  const [a, b] = [first * dimensions, second * dimensions];
  let dot = 0;
  for (let i = 0; i < dimensions; i++) dot += values[a + i]! * values[b + i]!;
  return dot;
}

/** Of rows of length 1. */
function distanceOf(values: Float32Array, dimensions: number, first: number, second: number): number {
  return Math.sqrt(Math.max(0, 2 - 2 * product(values, dimensions, first, second)));
}

/** `wordings` from the commonest on. */
function clusterOf(
  wordings: readonly string[],
  byWording: ReadonlyMap<string, readonly CallFinding[]>,
  spread: number,
): FindingCluster {
  const [wording = ""] = wordings;
  const findings = wordings
    .flatMap((each) => byWording.get(each)!)
    .toSorted((a, b) => a.epochMs - b.epochMs || (a.id < b.id ? -1 : 1));
  const { kind, cause, target } = findings[0]!;
  const about = target === undefined ? [] : [target];
  return {
    id: digestOf(JSON.stringify([kind, cause, wording, ...about])).slice(0, 12),
    kind,
    cause,
    wording,
    numWordings: wordings.length,
    commonestShare: byWording.get(wording)!.length / findings.length,
    spread,
    findings,
  };
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
