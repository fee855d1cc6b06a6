// What a user meets first: `npm start`, a chat through the `openai` package, metrics, a graceful end. On the embedded model.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { NotFoundError, OpenAI } from "openai";
import { forcedLogprobs, openAiJudge, openAiTarget } from "../packages/evals/dist/index.js";
import { startServer } from "./lib/start-server.mjs";
import { root, say } from "./lib/steps.mjs";

/** A case of nothing but messages. */
function caseOf(id, asked) {
  const parameters = { temperature: 0, maxTokens: 48 };
  return { id, messages: asked, tools: [], expected: {}, parameters, tags: [], metadata: {} };
}

const npm = process.platform === "win32" ? "npm.cmd" : "npm";
const server = await startServer(["--port", "0", "--log-level", "warn"], [npm, "start", "--"]);
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });

const models = await client.models.list();
assert.deepEqual(
  models.data.map((model) => model.id),
  ["octavo-mini"],
);

const messages = [{ role: "user", content: "Hello! Who are you?" }];
const whole = await client.chat.completions.create({
  model: "octavo-mini",
  messages,
  temperature: 0,
  max_tokens: 48,
});
const text = whole.choices[0].message.content;
assert.ok(text.trim().length > 0, "the model says something");
say(`the model says: ${text}`);

const stream = await client.chat.completions.create({
  model: "octavo-mini",
  messages,
  temperature: 0,
  max_tokens: 48,
  stream: true,
});
let streamed = "";
for await (const chunk of stream) streamed += chunk.choices[0]?.delta.content ?? "";
assert.equal(streamed, text, "streamed and whole answers are the same text");

await assert.rejects(client.chat.completions.create({ model: "nobody", messages }), NotFoundError);

const metrics = await (await fetch(`${server.url}/metrics`)).text();
assert.match(metrics, /vllm:request_success_total\{[^}]*\} 2/);

const load = await new Promise((resolve) => {
  const args = ["bench", "serve", "--base-url", server.url, "--num-prompts", "12", "--request-rate", "20"];
  const lengths = [
    "--dataset",
    "shared-prefix",
    "--prefix-len",
    "64",
    "--input-len",
    "32",
    "--output-len",
    "8",
    "--json",
  ];
  execFile(process.execPath, [join(root, "packages/cli/dist/main.js"), ...args, ...lengths], (error, out) =>
    resolve({ code: error === null ? 0 : error.code, out }),
  );
});
assert.equal(load.code, 0, "octavo bench serve ends well");
const { summary } = JSON.parse(load.out);
assert.equal(summary.completed, 12);
assert.equal(summary.outputTokens, 12 * 8);
assert.ok(summary.cachedTokens > 0, "a shared prefix is found in the cache");

const signal = AbortSignal.timeout(120_000);
const target = openAiTarget({ name: "octavo", baseUrl: `${server.url}/v1` });
const answered = await target.answer(caseOf("e2e", messages), { signal });
assert.equal(answered.failure, undefined);
assert.equal(answered.serving?.cached_tokens, answered.usage.cachedTokens, "the serving record is asked for");
const forced = await forcedLogprobs(target, { messages, answer: { text } }, { signal });
assert.equal(forced.text, text);
const forcedLogprob = forced.tokens.reduce((sum, token) => sum + token.logprob, 0);
const own = await client.chat.completions.create({
  model: "octavo-mini",
  messages,
  temperature: 0,
  max_tokens: 48,
  logprobs: true,
});
const ownLogprob = own.choices[0].logprobs.content
  .slice(0, forced.tokens.length)
  .reduce((sum, token) => sum + token.logprob, 0);
assert.equal(forcedLogprob, ownLogprob, "a given answer has the logprobs that it was generated with");

const judge = openAiJudge({ baseUrl: `${server.url}/v1`, model: "octavo-mini", maxTokens: 64 });
// labels that this little model would say by itself: the probability of others is next to nothing
const question = {
  system: "Count the greetings.",
  user: "Hello!",
  labels: ["one", "two"],
  withReason: false,
};
const verdict = await judge.ask(question, { signal });
const probability = verdict.probabilities?.[verdict.label];
assert.ok(probability > 0 && probability <= 1, `a held verdict has its probability, got ${probability}`);

await server.stop();
await assert.rejects(fetch(`${server.url}/health`), "ending npm ends the server");
say("end to end: ok");
