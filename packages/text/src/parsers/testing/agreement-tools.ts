import type { ChatTool } from "@octavo/protocol";

const tool = (name: string, properties: Readonly<Record<string, unknown>>): ChatTool => ({
  type: "function",
  function: { name, parameters: { type: "object", properties } },
});
const string = { type: "string" };

export const agreementTools: readonly ChatTool[] = [
  tool("get_weather", { city: string, unit: string, date: string }),
  tool("get_time", { zone: string }),
  tool("refresh", {}),
  tool("edit", { text: string, path: string, quoted: string, symbol: string }),
  tool("convert", {
    text: string,
    count: { type: "integer" },
    ratio: { type: "number" },
    flag: { type: "boolean" },
    nothing: { type: "null" },
    list: { type: "array" },
    map: { type: "object" },
    maybe: { anyOf: [string, { type: "null" }] },
    choice: { anyOf: [{ type: "object" }, { type: "null" }] },
  }),
];
