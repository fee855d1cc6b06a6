import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { JsonValue } from "../grammar.js";
import { schemaGrammar } from "../testing/byte-grammar.js";
import { isObject, kindOf, kindsOf } from "./keywords.js";

interface Group {
  readonly file: string;
  readonly description: string;
  readonly schema: JsonValue;
  readonly tests: readonly {
    readonly description: string;
    readonly data: JsonValue;
    readonly valid: boolean;
  }[];
}

const drafts = ["draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"] as const;
const suite = new URL("../../../fixtures/json-schema-test-suite/", import.meta.url);
const guide = new URL("../../../../../docs/guide/structured-output.md", import.meta.url);

/** Keywords refused in some use or other, with an example of each, as the guide lists them. */
const refused = [...readFileSync(guide, "utf8").matchAll(/^\| `([^`]+)` \| `(\{.*\})` \|$/gm)].map(
  ([, keyword, example]) => [keyword!, JSON.parse(example!) as JsonValue] as const,
);

/** What the suite asks for and the specification leaves to implementations: content of strings, and 1.0 as another thing than 1. */
const leftOut: ReadonlySet<string> = new Set(["optional/content", "optional/zeroTerminatedFloats"]);

/** Where valid instances are not all generated, by the guide's reasons. */
const restricted: Readonly<Record<string, readonly string[]>> = {
  "no members but the declared ones": [
    "additionalProperties > additionalProperties are allowed by default",
    "anyOf > anyOf complex types",
    "dependencies > dependent subschema incompatible with root",
    "dependentSchemas > dependent subschema incompatible with root",
    "not > forbidden property",
    "properties > object properties validation",
    "dynamicRef > A $dynamicRef that initially resolves to a schema without a matching $dynamicAnchor behaves like a normal $ref to $anchor",
  ],
  "members in the order of their declaration": [
    "allOf > allOf",
    "allOf > allOf with base schema",
    "const > const with object",
    "dependencies > dependencies",
    "dependencies > multiple dependencies",
    "dependentRequired > multiple dependents required",
    "dependentRequired > dependencies with escaped characters",
    "optional/dependencies-compatibility > multiple dependents required",
    "optional/dependencies-compatibility > dependencies with escaped characters",
  ],
  "keywords say which type is meant": [
    "dependencies > dependencies with empty array",
    "dependentRequired > single dependency",
    "dependentRequired > empty dependents",
    "dependentSchemas > single dependency",
    "optional/dependencies-compatibility > single dependency",
    "optional/dependencies-compatibility > empty dependents",
    "optional/dependencies-compatibility > single schema dependency",
    "recursiveRef > $recursiveRef without $recursiveAnchor works like $ref",
    "ref > root pointer ref",
    "vocabulary > schema that uses custom metaschema with with no validation vocabulary",
  ],
  "digits and exponents": [
    "optional/bignum > integer",
    "optional/float-overflow > all integers are multiples of 0.5, if overflow is handled",
  ],
  "keywords beside $ref count": ["ref > ref overrides any sibling keywords"],
  "one branch is seen": [
    "unevaluatedItems > unevaluatedItems can see annotations from if without then and else",
    "unevaluatedProperties > unevaluatedProperties can see annotations from if without then and else",
    "unevaluatedProperties > unevaluatedProperties with anyOf",
  ],
};
const isRestricted = new Set(Object.values(restricted).flat());

function groupsOf(draft: string): Group[] {
  const groups = JSON.parse(readFileSync(new URL(`${draft}.json`, suite), "utf8")) as Group[];
  return groups.filter(({ file }) => !leftOut.has(file));
}

/** Formats hold always, in fewer ways than the suite knows; and a value may be of a kind that its schema says nothing of. */
function isLeftOut({ file, schema }: Group, data: JsonValue): boolean {
  if (file.startsWith("optional/format/") || file === "format") return true;
  return isObject(schema) && (kindsOf({ schema, path: "#" }) & kindOf(data)) === 0;
}

describe("the JSON Schema Test Suite", () => {
  const used = new Set<string>();
  for (const draft of drafts) {
    it(`gives no text that ${draft} finds invalid, and all that the guide does not leave out`, () => {
      let numTests = 0;
      let numRefused = 0;
      for (const group of groupsOf(draft)) {
        const name = `${group.file} > ${group.description}`;
        let allows: (text: string) => boolean;
        try {
          allows = schemaGrammar(group.schema);
        } catch (thrown) {
          numRefused += 1;
          assert.ok(
            thrown instanceof OctavoError && thrown.code === "invalid_request",
            `${name}: ${String(thrown)}`,
          );
          if (thrown.message.startsWith("No text")) {
            for (const { data, valid } of group.tests)
              assert.ok(!valid || isLeftOut(group, data), `${name} has an instance: ${JSON.stringify(data)}`);
          } else {
            const keyword = /schema's #\S*?\/?([^/\s]+) /.exec(thrown.message)?.[1] ?? "";
            assert.ok(
              refused.some(([known]) => known === keyword),
              `${name}: the guide does not list ${keyword}: ${thrown.message}`,
            );
          }
          continue;
        }
        for (const { description, data, valid } of group.tests) {
          const isAllowed = allows(JSON.stringify(data));
          numTests += 1;
          assert.ok(
            valid || !isAllowed,
            `${draft}: ${name} > ${description}: ${JSON.stringify(data)} is not valid`,
          );
          if (!valid || isAllowed || isLeftOut(group, data)) continue;
          assert.ok(
            isRestricted.has(name),
            `${draft}: ${name} > ${description}: ${JSON.stringify(data)} is valid`,
          );
          used.add(name);
        }
      }
      assert.ok(
        numTests > 750 && numRefused * 5 < numTests,
        `${numTests} tests, ${numRefused} schemas refused`,
      );
    });
  }

  it("leaves out nothing that the list of restrictions does not need", () => {
    assert.deepEqual(
      [...isRestricted].filter((name) => !used.has(name)),
      [],
    );
  });
});

describe("the guide's list of what is refused", () => {
  for (const [keyword, schema] of refused) {
    it(`${keyword}: ${JSON.stringify(schema).slice(0, 80)}`, () => {
      assert.throws(
        () => schemaGrammar(schema),
        (error) =>
          error instanceof OctavoError &&
          error.code === "invalid_request" &&
          error.message.includes(`/${keyword} `),
      );
    });
  }
});
