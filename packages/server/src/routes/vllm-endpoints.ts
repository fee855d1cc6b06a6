import { classifyRequest, OctavoError, poolingRequest } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";
import { handleClassify } from "./classify.js";
import { handlePooling } from "./embeddings.js";
import { type Endpoint, endpoint, endpointWithBody } from "./endpoint.js";
import { sleepEndpoints } from "./sleep.js";

/** vLLM's endpoints beside those of OpenAI's API. */
export const vllmEndpoints: readonly Endpoint[] = [
  endpointWithBody({
    method: "POST",
    path: "/pooling",
    access: "tenant",
    span: "embeddings",
    answer: "json",
    summary: "Embeddings in the form of vLLM's pooling answers.",
    request: poolingRequest,
    handle: handlePooling,
  }),
  endpointWithBody({
    method: "POST",
    path: "/classify",
    aliases: ["/v1/classify"],
    access: "tenant",
    span: "none",
    runsModel: true,
    answer: "json",
    summary: "Probabilities of labels, from models with a head that classifies.",
    request: classifyRequest,
    handle: handleClassify,
  }),
  endpoint({
    method: "GET",
    path: "/tokenizer_info",
    access: "tenant",
    span: "none",
    answer: "json",
    summary:
      "The tokenizer in the names of `tokenizer_config.json`; only with `--enable-tokenizer-info-endpoint`.",
    handle: handleTokenizerInfo,
  }),
  endpoint({
    method: "POST",
    path: "/reset_prefix_cache",
    access: "admin",
    span: "none",
    answer: "nothing",
    summary: "Forgets all cached prefixes; 503 while requests run.",
    handle: handleResetPrefixCache,
  }),
  ...sleepEndpoints,
];

function handleTokenizerInfo({ model, config }: Service, { response }: RequestContext): void {
  if (!config.enableTokenizerInfoEndpoint) {
    throw new OctavoError(
      "not_found",
      "this is off here; the server's operator can allow it with --enable-tokenizer-info-endpoint",
    );
  }
  const { tokenizer, engine, chatTemplate } = model;
  const tokenOf = (id: number | undefined): string | null =>
    (id === undefined ? undefined : tokenizer.idToToken(id)) ?? null;
  sendJson(response, 200, {
    tokenizer_class: "PreTrainedTokenizerFast",
    model_max_length: engine.maxModelLen,
    vocab_size: tokenizer.vocabSize,
    bos_token: tokenOf(tokenizer.bosTokenId),
    eos_token: tokenOf(tokenizer.eosTokenId),
    additional_special_tokens: [...tokenizer.specialTokenIds].flatMap((id) => tokenOf(id) ?? []),
    chat_template: chatTemplate?.source ?? null,
  });
}

function handleResetPrefixCache({ model }: Service, { response }: RequestContext): void {
  if (!model.engine.resetPrefixCache())
    throw new OctavoError("overloaded", "running requests hold cached prefixes; try again when none runs");
  response.writeHead(200, { "content-length": 0 }).end();
}
