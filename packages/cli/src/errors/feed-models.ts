import { type OpenAiJudge, openAiJudge } from "@octavo/evals";
import {
  type EmbedTexts,
  type FeedState,
  hasMeasuredCause,
  judgeCause,
  needsJudge,
  recordJudgement,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { keyOf } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";

/** What clusters findings by meaning, in place of words. */
export const embeddingRows = {
  embeddings: option.text("--embeddings <url>", "server whose embeddings findings are clustered by", {
    defaultText: "words and pairs of words",
  }),
  embeddingModel: option.text("--embedding-model <name>", "its model"),
  embeddingKeyEnv: option.text("--embedding-key-env <name>", "environment variable with its key"),
};

interface EmbeddingFlags {
  readonly embeddings: string | undefined;
  readonly embeddingModel: string | undefined;
  readonly embeddingKeyEnv: string | undefined;
}

/** Throws `invalid_option` for a server without a model, or a model without a server. */
export function embedOf(flags: EmbeddingFlags): EmbedTexts | undefined {
  const model = modelAt(flags.embeddings, flags.embeddingModel, flags.embeddingKeyEnv, "embedding");
  const { signal } = new AbortController();
  return model && ((texts) => model.embed(texts, { signal }));
}

interface JudgeFlags {
  readonly judge: string | undefined;
  readonly judgeModel: string | undefined;
  readonly judgeKeyEnv: string | undefined;
}

/** The feed with causes that a judge names, where one is given and what was measured names none. */
export async function withJudgedCauses(
  state: FeedState,
  { judge: url, judgeModel, judgeKeyEnv }: JudgeFlags,
): Promise<FeedState> {
  const judge = modelAt(url, judgeModel, judgeKeyEnv, "judge");
  if (judge === undefined) return state;
  return interruptible(async (signal) => {
    let judged = state;
    for (const entry of state.entries.filter((one) => needsJudge(one, hasMeasuredCause(one)))) {
      const judgement = await judgeCause(entry, judge, signal);
      if (judgement !== undefined) judged = recordJudgement(judged, entry.id, judgement);
    }
    return judged;
  });
}

function modelAt(
  baseUrl: string | undefined,
  model: string | undefined,
  keyEnv: string | undefined,
  what: "judge" | "embedding",
): OpenAiJudge | undefined {
  if (baseUrl === undefined && model === undefined) return undefined;
  const server = what === "judge" ? "judge" : "embeddings";
  if (baseUrl === undefined || model === undefined)
    throw new OctavoError("invalid_option", `give --${server} and --${what}-model: a server and its model`, {
      param: baseUrl === undefined ? server : `${what}-model`,
    });
  const apiKey = keyOf(`${what}-key-env`, keyEnv);
  return openAiJudge({ baseUrl, model, ...(apiKey !== undefined && { apiKey }) });
}
