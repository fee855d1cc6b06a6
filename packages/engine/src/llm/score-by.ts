import type { Checkpoint } from "@octavo/artifacts/checkpoint/checkpoint";
import { OctavoError } from "@octavo/protocol/errors";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";

/**
 * The checkpoint as a reranker whose score is the logit of "yes" less that of "no": their softmax is this score's sigmoid.
 * @throws OctavoError `invalid_option` for models that were not trained to answer so
 */
export function scoredByYesOrNo(checkpoint: Checkpoint): Checkpoint {
  const { config, name } = checkpoint;
  const refused = (problem: string): OctavoError =>
    new OctavoError("invalid_option", `score_by yes-no is for Qwen3-Reranker models; ${name} ${problem}.`, {
      param: "score_by",
    });
  if (config.architecture !== "Qwen3ForCausalLM") throw refused(`is a ${config.architecture}`);
  if (config.classifier !== undefined) throw refused("has a head that scores; leave the option out");
  if (config.hasHead === false) throw refused("has no output head");
  using tokenizer = disposable(createTokenizer(checkpoint.tokenizer));
  const [yes, no] = ["yes", "no"].map((word) => tokenizer.it.tokenToId(word));
  if (yes === undefined || no === undefined) throw refused('lacks the token "yes" or "no"');
  return {
    ...checkpoint,
    config: {
      ...config,
      classifier: { labels: ["yes"], pooling: "last", activation: "sigmoid", between: [yes, no] },
    },
  };
}

function disposable<T extends { [Symbol.dispose]?(): void }>(it: T): { readonly it: T } & Disposable {
  return { it, [Symbol.dispose]: () => it[Symbol.dispose]?.() };
}
