import { z } from "zod";
import { listOf, requestLimits, unsupported, withoutEffect, withWireForm } from "./fields.js";
import type { IssueParams } from "./validation.js";

export const chatRoles = ["system", "developer", "user", "assistant", "tool"] as const;
export type ChatRole = (typeof chatRoles)[number];

/** Where an image is: a data URL, or one from which the operator allows to fetch. */
export interface ImagePart {
  readonly type: "image_url";
  readonly image_url: { readonly url: string };
}

const contentPart = z
  .object({
    type: z.string(),
    text: z.unknown().optional(),
    image_url: z.unknown().optional(),
    refusal: z.unknown().optional(),
    prompt_cache_breakpoint: withoutEffect(),
    cache_control: withoutEffect(),
  })
  .transform((part, context) => {
    if (part.type === "image_url") return imagePart(part.image_url, context);
    const isText = part.type === "text" || part.type === "input_text" || part.type === "output_text";
    const text = isText ? part.text : part.type === "refusal" ? part.refusal : undefined;
    if (typeof text === "string") return { type: "text" as const, text };
    if (isText || part.type === "refusal") {
      context.addIssue({
        code: "custom",
        message: `a ${part.type} part needs a string`,
        path: [part.type === "refusal" ? "refusal" : "text"],
      });
      return z.NEVER;
    }
    const params: IssueParams = { errorCode: "unsupported_parameter" };
    const name = JSON.stringify(part.type.slice(0, 48));
    context.addIssue({
      code: "custom",
      message: `content parts of type ${name} are not supported; parts of type text and image_url are`,
      path: ["type"],
      params: { ...params },
    });
    return z.NEVER;
  });

/** OpenAI's object, or the URL alone. `detail` has no effect: a model makes as many tokens of any image. */
function imagePart(given: unknown, context: z.RefinementCtx): ImagePart {
  const url = typeof given === "object" && given !== null && "url" in given ? given.url : given;
  if (typeof url === "string") return { type: "image_url", image_url: { url } };
  context.addIssue({ code: "custom", message: "an image_url part needs a url", path: ["image_url"] });
  return z.NEVER;
}

/** A string, or parts of text and images. */
const content = z.union([z.string(), listOf(contentPart, { max: requestLimits.contentParts })]);

/** A call the assistant made earlier; `arguments` is JSON in a string, as OpenAI sends it, or already an object. */
const functionCall = z.object({
  id: z.string().nullish(),
  type: z.literal("function").nullish(),
  function: z.object({
    name: z.string().min(1),
    arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
  }),
});

/** Of a custom tool: its one argument is a text. */
const customCall = z.object({
  id: z.string().nullish(),
  type: z.literal("custom"),
  custom: z.object({ name: z.string().min(1), input: z.string() }),
});

const toolCall = z.discriminatedUnion("type", [functionCall, customCall]);

export const chatMessage = z
  .object({
    role: z.enum(chatRoles),
    content: content.nullish(),
    name: z.string().nullish(),
    tool_calls: listOf(toolCall, { max: requestLimits.tools }).nullish(),
    tool_call_id: z.string().nullish(),
    refusal: z.string().nullish(),
    reasoning: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    function_call: unsupported("use tool_calls instead of the older function_call field"),
    audio: unsupported("this model reads text"),
  })
  .superRefine((message, context) => {
    const hasContent = message.content !== undefined && message.content !== null;
    const mayBeEmpty = message.role === "assistant";
    if (!hasContent && !mayBeEmpty) {
      context.addIssue({
        code: "custom",
        message: `a ${message.role} message needs content`,
        path: ["content"],
      });
    }
  });

export type ChatMessage = z.output<typeof chatMessage>;

/** Names are written into prompts: letters, digits and a few marks, nothing that could be markup. */
const toolName = z
  .string()
  .min(1)
  .max(256)
  .refine((name) => /^[\p{L}\p{N}_.:/-]+$/u.test(name), {
    error: "may have letters, digits and the characters _ . : / - only",
  });

/** A function the model may call, as given to its template. */
const functionTool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name: toolName,
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
    strict: z.boolean().nullish(),
  }),
});

export type ChatTool = z.output<typeof functionTool>;

const customFormat = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text") }),
  z.object({
    type: z.literal("grammar"),
    grammar: z.object({ syntax: z.enum(["lark", "regex"]), definition: z.string().min(1) }),
  }),
]);

/** A tool that takes a text instead of arguments. */
const customTool = z.object({
  type: z.literal("custom"),
  custom: z.object({
    name: toolName,
    description: z.string().nullish(),
    format: customFormat.nullish(),
  }),
});

export type ChatCustomTool = z.output<typeof customTool>;

const chatTool = z.discriminatedUnion("type", [functionTool, customTool], {
  error: "expected a tool of type function or custom; this server has no built-in tools",
});

export function toolNameOf(tool: ChatTool | ChatCustomTool): string {
  return tool.type === "custom" ? tool.custom.name : tool.function.name;
}

/** Tools of one request. Names must differ: an answer names the tool it calls. */
export const chatTools = listOf(chatTool, { max: requestLimits.tools }).superRefine((tools, context) => {
  const seen = new Map<string, number>();
  for (const [index, tool] of tools.entries()) {
    const name = toolNameOf(tool);
    const earlier = seen.get(name);
    if (earlier !== undefined) {
      context.addIssue({
        code: "custom",
        message: `tools[${earlier}] has the name ${JSON.stringify(name.slice(0, 64))} already`,
        path: [index, tool.type, "name"],
      });
      return;
    }
    seen.set(name, index);
  }
});

/** The conversation. A tool's result must answer a call that an earlier assistant message made. */
export const chatMessages = listOf(chatMessage, { min: 1, max: requestLimits.messages }).superRefine(
  (messages, context) => {
    const ids = new Set<string>();
    let hasCalls = false;
    for (const [index, message] of messages.entries()) {
      for (const call of message.tool_calls ?? []) {
        hasCalls = true;
        if (typeof call.id === "string") ids.add(call.id);
      }
      if (message.role !== "tool") continue;
      const id = message.tool_call_id ?? undefined;
      if (id === undefined ? hasCalls : ids.has(id)) continue;
      const what = id === undefined ? "" : ` with the id ${JSON.stringify(id.slice(0, 64))}`;
      context.addIssue({
        code: "custom",
        message: `no assistant message before it has a tool call${what}`,
        path: [index, ...(id === undefined ? [] : ["tool_call_id"])],
      });
      return;
    }
  },
);

// the checks above hide the lists' own forms
withWireForm(chatTools, { items: chatTool, maxItems: requestLimits.tools });
withWireForm(chatMessages, { items: chatMessage, minItems: 1, maxItems: requestLimits.messages });
