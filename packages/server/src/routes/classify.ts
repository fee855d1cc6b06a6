import { randomUUID } from "node:crypto";
import type { ClassificationList, ClassifyRequest } from "@octavo/protocol";
import { invalidField } from "@octavo/protocol/refusal";
import { classifyInputs } from "../generation/classify-inputs.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { promptsOf } from "./embeddings.js";
import { nowSeconds, type Service } from "../service.js";

/** The probabilities of the labels of the model's head, as vLLM's `/classify` gives them. */
export async function handleClassify(
  service: Service,
  context: RequestContext,
  request: ClassifyRequest,
): Promise<void> {
  const served = service.servedModel(request.model);
  const { classifier } = service.model.config;
  if (classifier === undefined)
    throw invalidField(
      "model",
      `${JSON.stringify(served.name)} has no head that classifies; use /v1/embeddings`,
    );
  const { inputs, fieldOf } = await promptsOf(service, context, request);
  const results = await classifyInputs(service, context, served, classifier, inputs, request, fieldOf);
  const numTokens = results.reduce((total, { usage }) => total + usage.promptTokens, 0);
  const answer: ClassificationList = {
    id: `classify-${request.request_id ?? randomUUID()}`,
    object: "list",
    created: nowSeconds(),
    model: served.name,
    data: results.map(({ embedding }, index) => {
      const best = embedding.indexOf(Math.max(...embedding));
      return {
        index,
        label: classifier.labels[best] ?? null,
        probs: [...embedding],
        num_classes: embedding.length,
      };
    }),
    usage: { prompt_tokens: numTokens, total_tokens: numTokens, completion_tokens: 0 },
  };
  sendJson(context.response, 200, answer);
}
