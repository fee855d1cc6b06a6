import type { ChatTool } from "@octavo/protocol";

/** What an output comes to: texts joined, calls in order. */
export interface TranscriptResult {
  readonly content?: string;
  readonly reasoning?: string;
  readonly calls?: readonly ExpectedCall[];
}

export interface ExpectedCall {
  readonly name: string;
  readonly arguments: string;
  readonly id?: string;
  readonly problem?: string;
}

export interface Transcript {
  readonly title: string;
  readonly format: string;
  readonly output: string;
  readonly expected: TranscriptResult;
}

export const transcriptTools: readonly ChatTool[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      parameters: {
        type: "object",
        properties: {
          city: { type: "string" },
          days: { type: "integer" },
          detailed: { type: "boolean" },
          tags: { type: "array", items: { type: "string" } },
          note: { anyOf: [{ type: "string" }, { type: "null" }] },
        },
      },
    },
  },
  {
    type: "function",
    function: { name: "write_file", parameters: { properties: { text: { type: "string" } } } },
  },
];

export const weather = (city: string, extra: Partial<ExpectedCall> = {}): ExpectedCall => ({
  name: "get_weather",
  arguments: `{"city": "${city}"}`,
  ...extra,
});
