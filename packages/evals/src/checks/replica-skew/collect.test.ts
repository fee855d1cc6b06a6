import assert from "node:assert/strict";
import test, { describe } from "node:test";
import { checkNamed } from "../table.js";
import { bedOf, testCases, rightFor, type Sent, watched } from "../testing/test-bed.js";

describe("collecting for replica skew", () => {
  test("every replica answers every case, in turns, and is known by whom was asked", async () => {
    const sent: Sent[] = [];
    const replicas = ["a", "b", "c"].map((name) =>
      watched(name, sent, (one) => (name === "b" ? "wrong" : rightFor(one))),
    );
    const { result } = await checkNamed("replica-skew").run(
      bedOf(replicas[0]!, { replicas, cases: testCases(60) }),
      {},
    );
    assert.deepEqual(
      sent.slice(0, 6).map(({ target }) => target),
      ["a", "b", "c", "b", "c", "a"],
    );
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /^A replica is not like the others: b: exact below/);
  });
});
