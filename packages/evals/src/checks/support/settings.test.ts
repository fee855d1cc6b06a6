import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { parseSettings } from "./settings.js";

const schema = z.strictObject({ margin: z.number().min(0).max(1).default(0.02) });

test("what is not given has its default", () => {
  assert.deepEqual(parseSettings("tail", schema, undefined), { margin: 0.02 });
  assert.deepEqual(parseSettings("tail", schema, { margin: 0.1 }), { margin: 0.1 });
});

test("a bad setting is named, with the check it belongs to", () => {
  const of = (given: unknown) => {
    try {
      parseSettings("tail", schema, given);
    } catch (error) {
      assert(error instanceof OctavoError);
      assert.equal(error.code, "invalid_option");
      return error.message;
    }
    return assert.fail("not refused");
  };
  assert.match(of({ margin: 2 }), /^settings of the check tail: margin: .*got 2$/);
  assert.match(of({ margn: 0.1 }), /tail.*margn/);
  assert.match(of([]), /^settings of the check tail: they: .*got an array of 0$/);
});
