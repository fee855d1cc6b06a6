import { Random } from "@octavo/statistics";

/** A vector with the verdict that is to be imitated. */
export interface LabelledVector {
  readonly vector: ArrayLike<number>;
  readonly label: boolean;
}

export interface TrainingSettings {
  /** Units of the hidden layer; 0 is logistic regression. */
  readonly hidden: number;
  /** Weight of the squared parameters in the loss. */
  readonly l2: number;
  readonly epochs: number;
  readonly seed: number;
}

export interface TrainedLayer {
  /** Row by row, a row per output. */
  readonly weights: Float64Array;
  readonly bias: Float64Array;
}

export interface Standardisation {
  readonly mean: Float64Array;
  /** What a difference from the mean is multiplied with; 0 for a number that never varies. */
  readonly scale: Float64Array;
}

const batchSize = 32;
const rates = { first: 0.9, second: 0.999, epsilon: 1e-8 };

export function standardise(vectors: readonly ArrayLike<number>[]): Standardisation {
  const width = vectors[0]?.length ?? 0;
  const mean = new Float64Array(width);
  const scale = new Float64Array(width);
  for (let at = 0; at < width; at += 1) {
    const average = vectors.reduce((sum, vector) => sum + vector[at]!, 0) / vectors.length;
    const variance = vectors.reduce((sum, vector) => sum + (vector[at]! - average) ** 2, 0) / vectors.length;
    mean[at] = average;
    // divided by the root of the width too, so that a vector is about as long as 1 whatever the model
    scale[at] = variance > 1e-18 ? 1 / Math.sqrt(variance * width) : 0;
  }
  return { mean, scale };
}

/**
 * Layers that tell verdicts from standardised vectors: logistic regression, or one hidden layer of ReLUs. Cross entropy with weight
 * decay, both labels with the same weight in all, by Adam (Kingma and Ba 2015) over minibatches in a seeded order.
 */
export function trainNetwork(
  rows: readonly LabelledVector[],
  settings: TrainingSettings,
): readonly TrainedLayer[] {
  const random = new Random(settings.seed);
  const width = rows[0]?.vector.length ?? 0;
  const widths = settings.hidden === 0 ? [width, 1] : [width, settings.hidden, 1];
  const layers = widths.slice(1).map((outputs, index) => {
    const inputs = widths[index]!;
    const reach = settings.hidden === 0 ? 0 : Math.sqrt(2 / (index === 0 ? 1 : inputs));
    return {
      weights: Float64Array.from({ length: outputs * inputs }, () => reach * random.normal()),
      bias: new Float64Array(outputs),
    };
  });
  const numPassed = rows.filter(({ label }) => label).length;
  const weightOf = (label: boolean): number =>
    rows.length / 2 / (label ? numPassed : rows.length - numPassed);
  const adam = layers.map(({ weights, bias }) => ({
    weights: new Moments(weights.length),
    bias: new Moments(bias.length),
  }));
  const numSteps = settings.epochs * Math.ceil(rows.length / batchSize);
  let step = 0;
  for (let epoch = 0; epoch < settings.epochs; epoch += 1) {
    const order = random.shuffle([...rows.keys()]);
    for (let start = 0; start < order.length; start += batchSize) {
      const batch = order.slice(start, start + batchSize);
      const gradients = layers.map(({ weights, bias }) => ({
        weights: weights.map((weight) => settings.l2 * weight),
        bias: new Float64Array(bias.length),
      }));
      for (const index of batch) {
        const { vector, label } = rows[index]!;
        backpropagate(layers, gradients, vector, Number(label), weightOf(label) / batch.length);
      }
      step += 1;
      const rate = (settings.hidden === 0 ? 0.1 : 0.02) * (1 - (step - 1) / numSteps);
      for (const [at, layer] of layers.entries()) {
        adam[at]!.weights.apply(layer.weights, gradients[at]!.weights, rate, step);
        adam[at]!.bias.apply(layer.bias, gradients[at]!.bias, rate, step);
      }
    }
  }
  return layers;
}

/** Adds the gradient of one row's weighted cross entropy. */
function backpropagate(
  layers: readonly TrainedLayer[],
  gradients: readonly TrainedLayer[],
  vector: ArrayLike<number>,
  label: number,
  weight: number,
): void {
  const values: ArrayLike<number>[] = [vector];
  for (const [index, { weights, bias }] of layers.entries()) {
    const before = values[index]!;
    values.push(
      Float64Array.from(bias, (start, row) => {
        let sum = start;
        for (let at = 0; at < before.length; at += 1) sum += weights[row * before.length + at]! * before[at]!;
        return index < layers.length - 1 ? Math.max(0, sum) : sum;
      }),
    );
  }
  const logit = values.at(-1)![0]!;
  let delta = Float64Array.of(weight * (1 / (1 + Math.exp(-logit)) - label));
  for (let index = layers.length - 1; index >= 0; index -= 1) {
    const before = values[index]!;
    const { weights } = layers[index]!;
    const gradient = gradients[index]!;
    const next = new Float64Array(before.length);
    for (const [row, error] of delta.entries()) {
      if (error === 0) continue;
      gradient.bias[row]! += error;
      for (let at = 0; at < before.length; at += 1) {
        gradient.weights[row * before.length + at]! += error * before[at]!;
        if (index > 0 && before[at]! > 0) next[at]! += error * weights[row * before.length + at]!;
      }
    }
    delta = next;
  }
}

class Moments {
  readonly #first: Float64Array;
  readonly #second: Float64Array;

  constructor(length: number) {
    this.#first = new Float64Array(length);
    this.#second = new Float64Array(length);
  }

  apply(values: Float64Array, gradient: Float64Array, rate: number, step: number): void {
    const [ofFirst, ofSecond] = [1 - rates.first ** step, 1 - rates.second ** step];
    for (const [at, slope] of gradient.entries()) {
      const first = (this.#first[at] = rates.first * this.#first[at]! + (1 - rates.first) * slope);
      const second = (this.#second[at] = rates.second * this.#second[at]! + (1 - rates.second) * slope ** 2);
      values[at]! -= (rate * (first / ofFirst)) / (Math.sqrt(second / ofSecond) + rates.epsilon);
    }
  }
}
