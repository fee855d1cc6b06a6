import { OctavoError } from "@octavo/protocol";
import { z } from "zod";

/** Numbers as base64 of little-endian 32-bit floats: a file of them stays small, and reads the same everywhere. */
const floats = z
  .string()
  .regex(/^[A-Za-z0-9+/]*={0,2}$/, "expected base64 of 32-bit floats")
  .refine((text) => Buffer.byteLength(text, "base64") % 4 === 0, { message: "expected whole 32-bit floats" });

/** A classifier that imitates a judge, as a file holds it. */
export const distilledClassifier = z.strictObject({
  /** What it imitates: evaluator, judge and wording. */
  imitates: z.string(),
  embeddings: z.strictObject({
    model: z.string().min(1),
    /** Dimensions of one text's embedding; each input is embedded on its own. */
    dimensions: z.int().min(1).max(65_536),
    /** Default: the judge's server. */
    base_url: z.string().optional(),
    api_key_env: z.string().optional(),
  }),
  inputs: z.array(z.enum(["input", "output", "context", "expectedOutput"])).min(1),
  /** Beside the inputs' embeddings, how far each is from the others. */
  differences: z.boolean().default(false),
  mean: floats,
  scale: floats,
  /** From the inputs' embeddings one after the other to one number; ReLU between layers. Weights row by row, a row per output. */
  layers: z
    .array(z.strictObject({ weights: floats, bias: floats }))
    .min(1)
    .max(3),
  /** Scaling of the logit that makes its sigmoid the probability of a pass (Platt 1999). */
  calibration: z.strictObject({ slope: z.number(), intercept: z.number() }),
  /** Probability of its verdict from which on the classifier decides. */
  certainty: z.number().min(0.5).max(1),
  /** Agreement of its decisions with the judge, certified on cases that it had not seen. */
  guarantee: z.strictObject({
    agreement: z.number(),
    confidence: z.number(),
    lower_bound: z.number(),
    decided: z.int(),
    agreed: z.int(),
    certified_on: z.int(),
  }),
});

/** A classifier of embeddings that imitates a judge, as its file holds it. */
export type DistilledClassifier = z.output<typeof distilledClassifier>;

/** What decides how many numbers a classifier sees. */
export interface ClassifierShape {
  readonly inputs: { readonly length: number };
  readonly embeddings: { readonly dimensions: number };
  readonly differences?: boolean | undefined;
}

/** Numbers that a classifier of this shape sees of one case: embeddings of its inputs and, if asked for, their differences. */
export function featureCount({ inputs: { length }, embeddings, differences }: ClassifierShape): number {
  const pairs = differences === true ? (length * (length - 1)) / 2 : 0;
  return length * embeddings.dimensions + pairs * (embeddings.dimensions + 1);
}

/**
 * The inputs' embeddings one after the other; with differences then, of each two, |u - v| by dimension (Conneau et al. 2017, InferSent;
 * Reimers and Gurevych 2019) and the logarithm of their distance, in which equal texts stand apart from similar ones.
 */
export function featuresOf(vectors: readonly (readonly number[])[], differences: boolean): readonly number[] {
  const features = vectors.flat();
  if (!differences) return features;
  for (const [index, one] of vectors.entries())
    for (const other of vectors.slice(index + 1)) {
      const apart = one.map((value, at) => Math.abs(value - other[at]!));
      features.push(...apart, Math.log(nearestDistance + Math.hypot(...apart)));
    }
  return features;
}

/** Of embeddings that are equal up to rounding. */
const nearestDistance = 1e-4;

/** Unpacks a classifier once, and then tells the probability of a pass. */
export class ClassifierModel {
  readonly numInputs: number;
  readonly #mean: Float32Array;
  readonly #scale: Float32Array;
  readonly #layers: readonly { readonly weights: Float32Array; readonly bias: Float32Array }[];
  readonly #calibration: DistilledClassifier["calibration"];

  /** @throws OctavoError `artifact_invalid` where the sizes of its parts do not fit each other */
  constructor(classifier: Pick<DistilledClassifier, "mean" | "scale" | "layers" | "calibration">) {
    this.#mean = unpackFloats(classifier.mean);
    this.#scale = unpackFloats(classifier.scale);
    this.#layers = classifier.layers.map(({ weights, bias }) => ({
      weights: unpackFloats(weights),
      bias: unpackFloats(bias),
    }));
    this.#calibration = classifier.calibration;
    this.numInputs = this.#mean.length;
    let width = this.numInputs;
    for (const { weights, bias } of this.#layers) {
      if (weights.length !== width * bias.length) throw misshapen();
      width = bias.length;
    }
    if (width !== 1 || this.#scale.length !== this.numInputs) throw misshapen();
  }

  /** @param embedding of `numInputs` numbers */
  logit(embedding: ArrayLike<number>): number {
    let values = Float64Array.from(this.#mean, (mean, at) => (embedding[at]! - mean) * this.#scale[at]!);
    for (const [index, { weights, bias }] of this.#layers.entries()) {
      const width = values.length;
      const before = values;
      values = Float64Array.from(bias, (start, row) => {
        let sum = start;
        for (let at = 0; at < width; at += 1) sum += weights[row * width + at]! * before[at]!;
        return index < this.#layers.length - 1 ? Math.max(0, sum) : sum;
      });
    }
    return values[0]!;
  }

  passProbability(embedding: ArrayLike<number>): number {
    const { slope, intercept } = this.#calibration;
    return 1 / (1 + Math.exp(-(slope * this.logit(embedding) + intercept)));
  }
}

/** Single-precision values as base64, as files of classifiers hold them. */
export function packFloats(values: ArrayLike<number>): string {
  const buffer = Buffer.alloc(values.length * 4);
  for (let index = 0; index < values.length; index += 1) buffer.writeFloatLE(values[index]!, index * 4);
  return buffer.toString("base64");
}

function unpackFloats(text: string): Float32Array {
  const buffer = Buffer.from(text, "base64");
  return Float32Array.from({ length: buffer.length / 4 }, (_, index) => buffer.readFloatLE(index * 4));
}

function misshapen(): OctavoError {
  return new OctavoError(
    "artifact_invalid",
    "the classifier's weights do not fit each other: distil it again",
  );
}
