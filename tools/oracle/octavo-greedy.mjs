// node tools/oracle/octavo-greedy.mjs MODEL PROMPT COUNT: Octavo's greedy continuation, as JSON with the prompt's ids.
import { openCheckpoint } from "@octavo/engine";
import { createTokenizer } from "@octavo/engine/parts";
import { ModelRunner } from "@octavo/engine/testing";
import { createCpuBackend } from "@octavo/kernels";

const [path, prompt, count] = process.argv.slice(2);
const checkpoint = await openCheckpoint(path);
const ids = Array.from(createTokenizer(checkpoint.tokenizer).encode(prompt, { addSpecialTokens: false }));
const backend = createCpuBackend({ numThreads: 2 });
const runner = await ModelRunner.load(backend, checkpoint, ids.length + Number(count), "f32");
process.stdout.write(JSON.stringify({ prompt: ids, tokens: await runner.greedy(ids, Number(count)) }));
runner[Symbol.dispose]();
backend[Symbol.dispose]();
