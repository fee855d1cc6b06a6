import assert from "node:assert/strict";
import { it } from "node:test";
import * as protocol from "./index.js";

it("exports these values and no others", () => {
  assert.deepEqual(Object.keys(protocol).toSorted(), [
    "OctavoError",
    "chatBatchRequest",
    "chatCompletionRequest",
    "chatRoles",
    "completionRequest",
    "countTokensRequest",
    "createSseDecoder",
    "defaultCompletionTokens",
    "describeValue",
    "detokenizeRequest",
    "embeddingRequest",
    "encodeSseJson",
    "errorCodeHeader",
    "errorCodes",
    "loadLoraRequest",
    "machineRecord",
    "maxTokenId",
    "messagesRequest",
    "meteringRecord",
    "parseWith",
    "priceTable",
    "queueDepthHeader",
    "replicaHeader",
    "requestLimits",
    "rerankRequest",
    "responsesRequest",
    "scoreRequest",
    "sseDone",
    "structuralTag",
    "toErrorBody",
    "toMessagesErrorBody",
    "tokenizeRequest",
    "unknownFields",
    "unloadLoraRequest",
    "usageInfo",
    "wireSchema",
  ]);
});
