// A conversation with a model that runs in the page: the engine as Node runs it, over files that were fetched.
import { provideGlobals } from "./node/globals.mjs";
import { addFile } from "./node/files.mjs";

const byId = (id) => document.getElementById(id);
const [form, message, send, stop] = ["form", "message", "send", "stop"].map(byId);

function say(text, hasFailed = false) {
  byId("state").textContent = text;
  byId("state").classList.toggle("failed", hasFailed);
}

async function fetched(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: HTTP status ${response.status}`);
  return response;
}

async function load() {
  if (navigator.gpu === undefined)
    throw new Error(
      "This browser has no WebGPU here: take a current one, and open the page at 127.0.0.1 or by https.",
    );
  say("Fetching the engine and the model");
  provideGlobals();
  const engine = import("@octavo/engine");
  const names = await (await fetched("/model")).json();
  await Promise.all(
    names.map(async (name) => addFile(`/model/${name}`, await (await fetched(`/model/${name}`)).bytes())),
  );
  const { LLM } = await engine;
  return LLM.load("/model", {
    device: "webgpu",
    maxModelLen: 2048,
    maxNumSeqs: 4,
    maxNumBatchedTokens: 256,
    kvCacheMemoryBytes: 64 << 20,
    onProgress: ({ phase, doneBytes, totalBytes }) =>
      say(`${phase[0].toUpperCase()}${phase.slice(1)}: ${Math.round((100 * doneBytes) / totalBytes)} %`),
  });
}

const messages = [];

function show(role, content = "") {
  const item = document.createElement("li");
  item.className = role;
  item.textContent = content;
  byId("conversation").append(item);
  return item;
}

async function answer(llm) {
  const content = message.value;
  messages.push({ role: "user", content });
  show("user", content);
  message.value = "";
  const item = show("assistant");
  const ended = new AbortController();
  stop.addEventListener("click", () => ended.abort(), { signal: ended.signal });
  [send.disabled, stop.disabled] = [true, false];
  try {
    const started = performance.now();
    const options = {
      temperature: byId("temperature").valueAsNumber,
      maxTokens: byId("max-tokens").valueAsNumber,
    };
    const generation = llm.chat([...messages], { ...options, signal: ended.signal });
    for await (const { text } of generation) item.append(text);
    const { usage } = await generation;
    const seconds = (performance.now() - started) / 1000;
    say(
      `${usage.promptTokens} tokens in, ${usage.completionTokens} out in ${seconds.toFixed(1)} s on ${llm.backend.info.instructionSet}`,
    );
  } catch (error) {
    say(error.message, true);
  } finally {
    messages.push({ role: "assistant", content: item.textContent });
    ended.abort();
    [send.disabled, stop.disabled] = [false, true];
  }
}

try {
  const llm = await load();
  // For the console, and for tests.
  globalThis.llm = llm;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void answer(llm);
  });
  say(`${llm.backend.info.instructionSet} is ready`);
  send.disabled = false;
} catch (error) {
  say(error.message, true);
}
