import type { Attributes, LlmOperation, ServerAddress } from "../span/llm-span.js";
import { HistogramSeries } from "./histogram-series.js";

/** A call of the model that is over, as the server's metrics count it. Times in ms. */
export interface ServedCall {
  readonly operation: LlmOperation;
  /** `gen_ai.provider.name`. */
  readonly provider: string;
  readonly requestModel: string;
  readonly responseModel: string;
  readonly server: ServerAddress | undefined;
  /** Low cardinality; undefined for a call that succeeded. */
  readonly errorType: string | undefined;
  readonly durationMs: number;
  /** One for each time that the model was run for it. */
  readonly outputs: readonly OutputTimes[];
}

/** Times of an answer's tokens, in ms. */
export interface OutputTimes {
  readonly timeToFirstTokenMs: number;
  /** Mean after the first; undefined where there was one token. */
  readonly timePerOutputTokenMs: number | undefined;
}

/**
 * The server metrics of OpenTelemetry's conventions for generative AI (`semantic-conventions-genai`, gen-ai-metrics, in
 * development): names, units, bucket bounds and attributes are theirs. Counts are cumulative, since `startEpochMs`.
 */
export class ServerMetrics {
  readonly startEpochMs: number;
  readonly #duration = new HistogramSeries({
    name: "gen_ai.server.request.duration",
    description: "Generative AI server request duration such as time-to-last byte or last output token.",
    bounds: [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92],
  });
  readonly #perOutputToken = new HistogramSeries({
    name: "gen_ai.server.time_per_output_token",
    description: "Time per output token generated after the first token for successful responses.",
    bounds: [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5],
  });
  readonly #toFirstToken = new HistogramSeries({
    name: "gen_ai.server.time_to_first_token",
    description: "Time to generate first token for successful responses.",
    bounds: [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
  });

  constructor(startEpochMs: number) {
    this.startEpochMs = startEpochMs;
  }

  get histograms(): readonly HistogramSeries[] {
    return [this.#duration, this.#perOutputToken, this.#toFirstToken];
  }

  record(call: ServedCall): void {
    const attributes = attributesOf(call);
    this.#duration.observe(call.durationMs / 1000, attributes);
    if (call.errorType !== undefined) return;
    for (const { timeToFirstTokenMs, timePerOutputTokenMs } of call.outputs) {
      this.#toFirstToken.observe(timeToFirstTokenMs / 1000, attributes);
      if (timePerOutputTokenMs !== undefined)
        this.#perOutputToken.observe(timePerOutputTokenMs / 1000, attributes);
    }
  }
}

function attributesOf(call: ServedCall): Attributes {
  const { server, errorType } = call;
  return {
    "gen_ai.operation.name": call.operation,
    "gen_ai.provider.name": call.provider,
    "gen_ai.request.model": call.requestModel,
    "gen_ai.response.model": call.responseModel,
    ...(server === undefined ? {} : { "server.address": server.host }),
    ...(server?.port === undefined ? {} : { "server.port": server.port }),
    ...(errorType === undefined ? {} : { "error.type": errorType }),
  };
}
