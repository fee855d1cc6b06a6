import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { asRecord } from "@octavo/protocol";
import {
  chatCompletion,
  type FakeHandler,
  type FakeRequest,
  replyJson,
  startFakeOpenAi,
} from "../testing/fake-openai-server.js";
import type { JudgeQuestion } from "./judge.js";
import { type OpenAiJudgeSettings, openAiJudge } from "./openai-judge.js";

const { signal } = new AbortController();
const plain: JudgeQuestion = {
  system: "Judge.",
  user: "Is it?",
  labels: ["pass", "fail"],
  withReason: false,
};
const reasoned: JudgeQuestion = { ...plain, withReason: true };

interface Asked {
  readonly format: string;
  readonly topLogprobs: unknown;
}

function formOf({ body }: FakeRequest): Asked {
  const format =
    body["response_format"] !== undefined
      ? "schema"
      : body["structured_outputs"] !== undefined
        ? "choice"
        : "text";
  return { format, topLogprobs: body["top_logprobs"] };
}

async function withJudge(
  handler: FakeHandler,
  use: (judge: ReturnType<typeof openAiJudge>, asked: () => readonly Asked[]) => Promise<void>,
  settings: Partial<OpenAiJudgeSettings> = {},
): Promise<void> {
  await using server = await startFakeOpenAi({ "/v1/chat/completions": handler });
  const judge = openAiJudge({ baseUrl: server.baseUrl, model: "judge-1", backoffMs: 1, ...settings });
  await use(judge, () => server.requests.map(formOf));
}

const says =
  (
    text: string,
    more: Readonly<Record<string, unknown>> = {},
    body: Readonly<Record<string, unknown>> = {},
  ): FakeHandler =>
  (_, response) =>
    replyJson(response, 200, Object.assign({}, chatCompletion(text, more), body));

const refuse = (response: Parameters<FakeHandler>[1], message: string): void =>
  replyJson(response, 400, { error: { message, code: "invalid_request_error" } });

describe("a judge behind an endpoint", () => {
  it("is held to a schema and read with the probabilities of its labels", async () => {
    const top = [
      { token: "fail", logprob: Math.log(0.75) },
      { token: "pass", logprob: Math.log(0.25) },
    ];
    const pieces = ['{"reason":"It is not.","verdict":"', "fail", '"}'].map((token) => ({
      token,
      logprob: 0,
    }));
    const logprobs = {
      content: pieces.map((piece) =>
        piece.token === "fail" ? { ...top[0], top_logprobs: top } : { ...piece, top_logprobs: [] },
      ),
    };
    await withJudge(says('{"reason":"It is not.","verdict":"fail"}', { logprobs }), async (judge, asked) => {
      const answer = await judge.ask(reasoned, { signal });
      assert.equal(answer.label, "fail");
      assert.equal(answer.reason, "It is not.");
      assert.ok(Math.abs(answer.probabilities!["pass"]! - 0.25) < 1e-9);
      assert.deepEqual(asked(), [{ format: "schema", topLogprobs: 20 }]);
    });
  });

  it("tries once what the server refuses, and remembers it", async () => {
    const handler: FakeHandler = ({ body }, response) => {
      if (body["response_format"] !== undefined) refuse(response, "response_format is not supported");
      else if (Number(body["top_logprobs"] ?? 0) > 5) refuse(response, "top_logprobs may be at most 5");
      else replyJson(response, 200, chatCompletion("pass"));
    };
    await withJudge(handler, async (judge, asked) => {
      const questions = [1, 2, 3].map((number) => judge.ask({ ...plain, user: `Is ${number}?` }, { signal }));
      const answers = await Promise.all(questions);
      assert.deepEqual(
        answers.map(({ label }) => label),
        ["pass", "pass", "pass"],
      );
      assert.deepEqual(
        asked().map(({ format, topLogprobs }) => `${format} ${String(topLogprobs)}`),
        ["schema 20", "schema 5", "schema undefined", "choice 20", "choice 5", "choice 5", "choice 5"],
      );
    });
  });

  it("passes by constraints that are ignored, and reads free text strictly", async () => {
    const handler: FakeHandler = ({ body }, response) =>
      replyJson(
        response,
        200,
        chatCompletion(
          formOf({ body } as FakeRequest).format === "text" ? "**Fail**." : "I think it might pass.",
        ),
      );
    await withJudge(handler, async (judge, asked) => {
      assert.equal((await judge.ask(plain, { signal })).label, "fail");
      assert.deepEqual(
        asked().map(({ format }) => format),
        ["schema", "choice", "text"],
      );
    });
  });

  for (const text of [
    "I think it should pass.",
    "pass or fail, who knows",
    "",
    '{"verdict": "perhaps"}',
    '{"reason": "no verdict"}',
    "passable",
  ])
    it(`fails, and gives no verdict, where the judge says ${JSON.stringify(text)}`, async () => {
      await withJudge(says(text), async (judge, asked) => {
        await assert.rejects(judge.ask(plain, { signal }), {
          code: "judge_failed",
          message: /judge-1.*no_verdict/,
        });
        await assert.rejects(judge.ask({ ...plain, user: "And this?" }, { signal }), {
          code: "judge_failed",
        });
        assert.deepEqual(
          asked().map(({ format }) => format),
          ["schema", "choice", "text", "text", "text", "text"],
        );
      });
    });

  it("shows a judge once what it said instead of a verdict", async () => {
    const handler: FakeHandler = ({ body }, response) => {
      const { length } = body["messages"] as readonly unknown[];
      replyJson(response, 200, chatCompletion(length === 2 ? "Surely it passes." : "pass"));
    };
    await withJudge(handler, async (judge, asked) => {
      assert.equal((await judge.ask(plain, { signal })).label, "pass");
      assert.equal(asked().length, 4);
      assert.equal((await judge.ask({ ...plain, user: "And this?" }, { signal })).label, "pass");
      assert.equal(asked().length, 6);
    });
  });

  it("reads a number as the label of the same value", async () => {
    const labels = Array.from({ length: 11 }, (_, index) => (index / 10).toFixed(1));
    for (let tenth = 0; tenth <= 10; tenth++) {
      const spellings = [`${tenth / 10}`, (tenth / 10).toFixed(2), (tenth / 10).toExponential()];
      for (const number of [...spellings, ...(tenth % 10 === 0 ? [`${tenth / 10}.`] : [])]) {
        const verdicts = [`"${number}"`, ...(number.endsWith(".") ? [] : [number])];
        for (const verdict of verdicts)
          await withJudge(says(`{"verdict": ${verdict}}`), async (judge) => {
            const { label } = await judge.ask({ ...plain, labels }, { signal });
            assert.equal(Number(label), tenth / 10, verdict);
          });
      }
    }
  });

  for (const [limits, message] of [
    [{ maxCalls: 3 }, /3 times.*max_calls/],
    [{ maxCostUsd: 0.0003, usdPerMillionTokens: { input: 1, output: 10 } }, /max_cost_usd/],
  ] as const)
    it(`asks no more than ${JSON.stringify(limits)} allow, other models of the endpoint included`, async () => {
      const usage = { prompt_tokens: 50, completion_tokens: 5 };
      await withJudge(
        says('{"verdict": "pass"}', {}, { usage }),
        async (judge, asked) => {
          for (const user of ["1", "2", "3"]) await judge.ask({ ...plain, user }, { signal });
          const more = judge.withModel("judge-2").ask(plain, { signal });
          await assert.rejects(more, { code: "judge_failed", message });
          assert.equal(asked().length, 3);
        },
        limits,
      );
    });

  it("needs a reason where one was asked for", async () => {
    await withJudge(says('{"verdict": "pass"}'), async (judge) => {
      await assert.rejects(judge.ask(reasoned, { signal }), { code: "judge_failed" });
    });
  });

  it("takes a fenced object, and what follows a model's thoughts", async () => {
    for (const text of [
      '```json\n{"reason": "ok", "verdict": "pass"}\n```',
      '<think>fail? {"verdict": "fail"}</think>\n{"reason": "ok", "verdict": "PASS"}',
    ])
      await withJudge(says(text), async (judge) => {
        assert.equal((await judge.ask(reasoned, { signal })).label, "pass");
      });
  });

  it("says that an answer was cut rather than read half of it", async () => {
    await withJudge(says('{"reason": "It goes on and', { finish_reason: "length" }), async (judge, asked) => {
      await assert.rejects(judge.ask(reasoned, { signal }), { message: /cut at 1024 tokens/ });
      assert.equal(asked().length, 1);
    });
  });

  it("tries again after failures that may pass, as the server asks", async () => {
    const handler: FakeHandler = ({ index }, response) => {
      if (index === 0) replyJson(response, 503, { error: { message: "loading" } });
      else if (index === 1) replyJson(response, 429, { error: { message: "slow" } }, { "retry-after": "0" });
      else if (index === 2) response.destroy();
      else replyJson(response, 200, chatCompletion('{"verdict":"pass"}'));
    };
    await withJudge(handler, async (judge, asked) => {
      assert.equal((await judge.ask(plain, { signal })).label, "pass");
      assert.equal(asked().length, 4);
    });
  });

  it("fails at once where trying again cannot help", async () => {
    const denied: FakeHandler = (_, response) => replyJson(response, 401, { error: { message: "no key" } });
    await withJudge(denied, async (judge, asked) => {
      await assert.rejects(judge.ask(plain, { signal }), { code: "judge_failed", message: /no key/ });
      assert.equal(asked().length, 1);
    });
  });

  it("takes a refused question as the question's own fault once others were answered", async () => {
    const handler: FakeHandler = ({ body }, response) => {
      if (JSON.stringify(body["messages"]).includes("too long")) refuse(response, "the prompt is too long");
      else replyJson(response, 200, chatCompletion('{"verdict":"pass"}'));
    };
    await withJudge(handler, async (judge, asked) => {
      await assert.rejects(judge.ask({ ...plain, user: "too long" }, { signal }), { message: /too long/ });
      assert.equal((await judge.ask(plain, { signal })).label, "pass");
      const before = asked().length;
      await assert.rejects(judge.ask({ ...plain, user: "too long again" }, { signal }), {
        code: "judge_failed",
      });
      assert.equal(asked().length, before + 1);
      assert.deepEqual(asked().at(-1), { format: "schema", topLogprobs: 20 });
    });
  });

  for (const { probeIntervalMs, expected } of [
    { probeIntervalMs: 0, expected: 3 + 9 },
    { probeIntervalMs: 1e9, expected: 3 },
  ])
    it(`gives a judge up that is down, and tries it again every ${probeIntervalMs} ms`, async () => {
      let isUp = false;
      const handler: FakeHandler = (_, response) => {
        if (isUp) replyJson(response, 200, chatCompletion('{"verdict":"pass"}'));
        else response.destroy();
      };
      await withJudge(
        handler,
        async (judge, asked) => {
          const failing = Array.from({ length: 10 }, (_, index) =>
            judge
              .ask({ ...plain, user: `${index}` }, { signal })
              .catch((thrown: unknown) => asRecord(thrown)["code"]),
          );
          assert.deepEqual(new Set(await Promise.all(failing)), new Set(["judge_failed"]));
          assert.equal(asked().length, expected);
          isUp = true;
          const again = judge.ask(plain, { signal });
          if (probeIntervalMs > 0) await assert.rejects(again, { message: /judge-1: connection/ });
          else assert.equal((await again).label, "pass");
        },
        { concurrency: 1, retries: 2, patienceMs: 0, probeIntervalMs },
      );
    });

  it("loses no case to a judge that is away for a while", async () => {
    const handler: FakeHandler = ({ index }, response) => {
      if (index < 8) response.destroy();
      else replyJson(response, 200, chatCompletion('{"verdict":"pass"}'));
    };
    await withJudge(
      handler,
      async (judge) => {
        const asking = [1, 2, 3, 4].map((number) => judge.ask({ ...plain, user: `${number}` }, { signal }));
        for (const answer of await Promise.all(asking)) assert.equal(answer.label, "pass");
      },
      { retries: 8 },
    );
  });

  it("asks no question twice, and no more at a time than it may", async () => {
    let running = 0;
    let most = 0;
    const handler: FakeHandler = async (_, response) => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running -= 1;
      replyJson(response, 200, chatCompletion('{"verdict":"pass"}'));
    };
    await withJudge(
      handler,
      async (judge, asked) => {
        const ask = (number: number) => judge.ask({ ...plain, user: `${number}` }, { signal });
        await Promise.all(Array.from({ length: 12 }, (_, index) => ask(index)));
        await Promise.all(Array.from({ length: 12 }, (_, index) => ask(index)));
        assert.equal(asked().length, 12);
        assert.equal(most, 3);
        await ask(100);
        await ask(0);
        assert.equal(asked().length, 14, "the cache holds 12, and 0 was the oldest");
        const other = judge.withModel("judge-2");
        await other.ask({ ...plain, user: "1" }, { signal });
        assert.equal(asked().length, 15, "another model has answers of its own");
      },
      { concurrency: 3, cachedAnswers: 12 },
    );
  });

  it("rejects with the signal's reason while it waits for its turn or an answer", async () => {
    await withJudge(
      () => undefined,
      async (judge) => {
        const controller = new AbortController();
        const reason = new Error("enough");
        const asking = [1, 2].map((number) =>
          judge.ask({ ...plain, user: `${number}` }, { signal: controller.signal }),
        );
        setTimeout(() => controller.abort(reason), 20);
        for (const one of await Promise.allSettled(asking))
          assert.equal(one.status === "rejected" && one.reason, reason);
      },
      { concurrency: 1 },
    );
  });
});
