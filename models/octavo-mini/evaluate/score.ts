import { isDeepStrictEqual } from "node:util";
import { Ajv } from "ajv";
import { type GoldenCase, notInPassage } from "../generator/index.js";
import type { ModelAnswer } from "./client.js";

/** One measured quality of an answer. A case counts only towards the measures it is asked about. */
export type Measures = Readonly<Record<string, boolean>>;

const ajv = new Ajv({ strict: false });

export function score(asked: GoldenCase, answer: ModelAnswer): Measures {
  const exact = answer.content === asked.gold;
  switch (asked.task) {
    case "chat":
      return { "chat: exact reply": exact };
    case "extraction":
      return scoreJson(asked, answer);
    case "tools":
      return scoreTools(asked, answer, exact);
    case "grounded":
      return asked.gold === notInPassage
        ? { "grounded: exact refusal": exact }
        : { "grounded: exact answer": exact };
    case "copying":
      return { [`copying: exact ${asked.kind}`]: exact };
    case "retrieval":
      return asked.kind === "missing"
        ? { "retrieval: missing key": exact }
        : { "retrieval: exact entry": exact };
  }
}

function scoreJson(asked: GoldenCase, answer: ModelAnswer): Measures {
  const value = parse(answer.content);
  const valid = value !== undefined;
  return {
    "extraction: valid JSON": valid,
    "extraction: valid under the schema":
      valid && asked.schema !== undefined && ajv.validate(asked.schema, value),
    "extraction: exact JSON": valid && isDeepStrictEqual(value, parse(asked.gold)),
  };
}

function scoreTools(asked: GoldenCase, answer: ModelAnswer, exact: boolean): Measures {
  const expected = asked.expectedCalls ?? [];
  if (expected.length === 0) {
    const silent = answer.calls?.length === 0;
    return asked.kind === "no-tool" || asked.kind === "small-talk"
      ? { "tools: no call where none is needed": silent, "tools: exact reply without a call": exact }
      : { "tools: exact answer from results": exact };
  }
  return {
    "tools: well-formed calls": answer.calls !== undefined && answer.calls.length > 0,
    "tools: exact calls": isDeepStrictEqual(answer.calls, expected),
    ...(expected.length > 1
      ? { "tools: exact parallel calls": isDeepStrictEqual(answer.calls, expected) }
      : {}),
    ...(asked.kind === "chain-second"
      ? { "tools: exact second call of a chain": isDeepStrictEqual(answer.calls, expected) }
      : {}),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
