import type { DetokenizeRequest, TokenizeRequest, TokenizeResponse } from "@octavo/protocol";
import type { Detokenizer } from "@octavo/engine";
import { chatPrompt } from "../generation/chat-prompt.js";
import { jsonWithLists, jsonWithText, sendJsonPieces } from "../http/json-pieces.js";
import type { RequestContext } from "../http/request-context.js";
import type { Service } from "../service.js";

export async function handleTokenize(
  service: Service,
  context: RequestContext,
  request: TokenizeRequest,
): Promise<void> {
  service.servedModel(request.model);
  const { tokenizer, engine } = service.model;
  const { messages } = request;
  const tokens = messages
    ? (
        await chatPrompt(service.model, { ...request, messages }, service.config, context, {
          media: service.media,
        })
      ).tokens
    : await tokenizer.encodeAsync(request.prompt ?? "", {
        addSpecialTokens: request.add_special_tokens ?? true,
        signal: context.signal,
        tenant: context.account.tenant,
      });
  const counts: Pick<TokenizeResponse, "count" | "max_model_len"> = {
    count: tokens.length,
    max_model_len: engine.maxModelLen,
  };
  const pieces =
    request.return_token_strs === true
      ? jsonWithLists(counts, { tokens, token_strs: tokenStrings(service, tokens) })
      : jsonWithLists(counts, { tokens }, { token_strs: null });
  await sendJsonPieces(context, pieces, service.config.stallTimeoutMs);
}

/** Keeps special tokens, so that tokenising the answer returns the ids. */
export async function handleDetokenize(
  service: Service,
  context: RequestContext,
  request: DetokenizeRequest,
): Promise<void> {
  service.servedModel(request.model);
  service.checkTokens(request.tokens, "tokens");
  const detokenizer = service.model.tokenizer.createDetokenizer({ skipSpecialTokens: false });
  const pieces = jsonWithText("prompt", textParts(detokenizer, request.tokens));
  await sendJsonPieces(context, pieces, service.config.stallTimeoutMs);
}

function* tokenStrings(service: Service, tokens: Int32Array): Iterable<string> {
  for (const token of tokens) yield service.model.tokenizer.idToToken(token) ?? "";
}

function* textParts(detokenizer: Detokenizer, tokens: Int32Array): Iterable<string> {
  for (const token of tokens) yield detokenizer.push(token);
  yield detokenizer.flush();
}
