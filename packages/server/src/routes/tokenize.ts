import {
  detokenizeRequest,
  tokenizeRequest,
  type DetokenizeResponse,
  type TokenizeResponse,
} from "@octavo/protocol";
import { chatPromptTokens } from "../generation/chat-prompt.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";

/** POST /tokenize */
export async function handleTokenize(service: Service, context: RequestContext): Promise<void> {
  const request = await service.readRequest(context, tokenizeRequest);
  service.checkModel(request.model);
  const { tokenizer, engine } = service.model;
  const { messages } = request;
  const tokens = messages
    ? await chatPromptTokens(service.model, { ...request, messages }, service.config)
    : await tokenizer.encodeAsync(request.prompt ?? "", {
        addSpecialTokens: request.add_special_tokens ?? true,
      });
  const ids = Array.from(tokens);
  const answer: TokenizeResponse = {
    count: ids.length,
    max_model_len: engine.maxModelLen,
    tokens: ids,
    token_strs: request.return_token_strs === true ? ids.map((id) => tokenizer.idToToken(id) ?? "") : null,
  };
  sendJson(context.response, 200, answer);
}

/** POST /detokenize; special tokens are kept, so that tokenising the answer gives the ids back. */
export async function handleDetokenize(service: Service, context: RequestContext): Promise<void> {
  const request = await service.readRequest(context, detokenizeRequest);
  service.checkModel(request.model);
  service.checkTokens(request.tokens, "tokens");
  const answer: DetokenizeResponse = {
    prompt: service.model.tokenizer.decode(request.tokens, { skipSpecialTokens: false }),
  };
  sendJson(context.response, 200, answer);
}
