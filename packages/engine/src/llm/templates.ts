import { OctavoError } from "@octavo/protocol";
import type { ChatTemplate, TemplateInput } from "../template/chat-template.js";
import type { Checkpoint } from "../weights/checkpoint.js";

export interface ModelTemplates {
  readonly chatTemplate: ChatTemplate | undefined;
  readonly namedChatTemplates: ReadonlyMap<string, ChatTemplate>;
  renderRequestTemplate(source: string, input: TemplateInput): Promise<string>;
}

export function compileTemplates(_checkpoint: Checkpoint, _override: string | undefined): ModelTemplates {
  return {
    chatTemplate: undefined,
    namedChatTemplates: new Map(),
    renderRequestTemplate: () => Promise.reject(new OctavoError("not_implemented", "x")),
  };
}
