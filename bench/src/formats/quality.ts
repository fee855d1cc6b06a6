import { type Cell, compareModels } from "@octavo/studio/compare";
import { ChatClient, runSuite } from "@octavo/octavo-mini/evaluate";
import { embeddedModel, withServer } from "../support/served-model.js";

/** What an artifact of octavo-mini keeps of it, on held-out cases. */
export interface Quality {
  /** KL(bf16 || artifact), nats a token, and where 95 % of its resamples lie. */
  readonly kl: number;
  readonly klInterval: Cell["kl"]["interval"];
  /** Share of tokens whose most likely next one is another. */
  readonly flips: number;
  /** Shares of cases, greedy. */
  readonly validJson: number;
  readonly exactJson: number;
  readonly exactCalls: number;
}

export interface QualityOptions {
  /** Conversations to be forced through both models, JSON lines. */
  readonly dataPath: string;
  /** Held-out cases a family. */
  readonly count: number;
  readonly seed: string;
}

export async function measureQuality(path: string, options: QualityOptions): Promise<Quality> {
  const { dataPath, count, seed } = options;
  const { summary } = await compareModels({ baseline: embeddedModel, variant: path, dataPath });
  const { figures } = await withServer(path, {}, async (baseUrl) => {
    const url = `${baseUrl}/v1`;
    const client = new ChatClient(url, await ChatClient.firstModel(url));
    return await runSuite({ client, count, seed, concurrency: 16, tasks: ["extraction", "tools"] });
  });
  const share = (measure: string): number => {
    const figure = figures.find((one) => one.measure === measure);
    return figure === undefined ? Number.NaN : figure.right / figure.of;
  };
  return {
    kl: summary.overall.kl.value,
    klInterval: summary.overall.kl.interval,
    flips: summary.overall.flips.value,
    validJson: share("extraction: valid JSON"),
    exactJson: share("extraction: exact JSON"),
    exactCalls: share("tools: exact calls"),
  };
}
