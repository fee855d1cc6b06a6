import type { IncomingHttpHeaders } from "node:http";
import { asObjects, asRecord, asString, type JsonFields, parseJson } from "@octavo/protocol";
import type { GatewayCaller, Operation } from "../exchange/exchange.js";

/** What routing may know of a request. */
export interface RoutingFacts {
  readonly operation: Operation;
  /** As the client named it. */
  readonly model: string;
  readonly isStream: boolean;
  readonly tenant: string | undefined;
  readonly tags: readonly string[];
  readonly metadata: JsonFields;
  readonly hasTools: boolean;
  readonly hasImages: boolean;
  /** About four bytes each, unless a tokenizer counted them. */
  readonly promptTokens: number;
  readonly maxTokens: number;
  /** 0 to 1. */
  readonly complexity: () => number;
}

const bytesPerToken = 4;
/** Assumed where the client sets no bound, for comparing costs alone. */
const assumedOutputTokens = 256;

export function routingFacts(
  operation: Operation,
  fields: JsonFields,
  numBytes: number,
  headers: IncomingHttpHeaders,
  caller: GatewayCaller,
): RoutingFacts {
  const sentTags = headers["x-octavo-tags"];
  const maxTokens = fields["max_completion_tokens"] ?? fields["max_tokens"] ?? fields["max_output_tokens"];
  return {
    operation,
    model: asString(fields["model"]) ?? "",
    isStream: fields["stream"] === true,
    tenant: caller.tenant,
    tags:
      typeof sentTags === "string"
        ? [...caller.tags, ...sentTags.split(",").map((tag) => tag.trim())]
        : caller.tags,
    metadata: metadataOf(fields, headers),
    hasTools: Array.isArray(fields["tools"]) && fields["tools"].length > 0,
    hasImages: hasImages(fields),
    promptTokens: Math.ceil(numBytes / bytesPerToken),
    maxTokens: typeof maxTokens === "number" ? maxTokens : assumedOutputTokens,
    complexity: () => complexityOf(fields),
  };
}

function metadataOf(fields: JsonFields, headers: IncomingHttpHeaders): JsonFields {
  const sent = headers["x-octavo-metadata"];
  const inBody = fields["metadata"];
  if (sent === undefined && inBody === undefined) return {};
  return { ...asRecord(inBody), ...(typeof sent === "string" && asRecord(parseJson(sent)?.value)) };
}

function hasImages(fields: JsonFields): boolean {
  const { messages } = fields;
  if (!Array.isArray(messages)) return false;
  return messages.some((message) => {
    const content = asRecord(message)["content"];
    return Array.isArray(content) && content.some((part) => /image/.test(String(asRecord(part)["type"])));
  });
}

const reasoningWords =
  /\b(?:why|prove|derive|explain|compare|analy[sz]e|step by step|trade-?offs?|design|debug|optimi[sz]e|refactor|plan)\b/gi;
const codeMarks = /```|\b(?:function|class|def|import|SELECT|const|return)\b|[{};]\s*\n/g;

/**
 * How hard a request looks, 0 to 1, without asking a model: length, turns, tools, code and words that ask for reasoning,
 * each saturating, in a weighted mean. It is a rule of thumb to route by, not a measurement.
 */
export function complexityOf(fields: JsonFields): number {
  const messages = asObjects(fields["messages"]);
  const texts = messages.map(({ content }) =>
    typeof content === "string"
      ? content
      : asObjects(content)
          .map((part) => asString(part["text"]) ?? "")
          .join("\n"),
  );
  const text =
    texts.length > 0 ? texts.join("\n").slice(-20_000) : (asString(fields["prompt"]) ?? "").slice(-20_000);
  const upTo = (value: number, most: number): number => Math.min(1, value / most);
  const tools = Array.isArray(fields["tools"]) ? fields["tools"].length : 0;
  return (
    0.3 * upTo(text.length, 8000) +
    0.15 * upTo(messages.length, 12) +
    0.15 * upTo(tools, 4) +
    0.2 * upTo(text.match(codeMarks)?.length ?? 0, 6) +
    0.2 * upTo(text.match(reasoningWords)?.length ?? 0, 3)
  );
}
