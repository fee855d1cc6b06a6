import type { KvCacheSpec, KvLayerShape, OutputRow, SamplerState, StepPlan } from "../backend.js";
import { isSameKvLayer } from "../kv-bytes.js";
import { checkInteger, checkReal, fail, isInteger, isReal } from "./numbers.js";
import type { CheckedProgram } from "./program.js";
import { checkReceived } from "./rank-ops.js";
import { checkStepStates } from "./step-states.js";

/** Raw logits that a step may return: 1 GiB of them. */
const mostLogits = 2 ** 28;

/**
 * Refuses a plan that would read or write outside its arrays, its cache or its vocabulary, with `invalid_request`
 * saying where. Linear in tokens, blocks and output rows.
 */
export function checkStepPlan(plan: StepPlan, program: CheckedProgram, cache: KvCacheSpec): void {
  const { numTokens, numSequences } = plan;
  checkCacheFits(program, cache);
  checkInteger("numTokens", numTokens, 1, program.maxTokens);
  checkInteger("numSequences", numSequences, 1, numTokens);
  checkLength("tokenIds", plan.tokenIds, numTokens);
  checkLength("positions", plan.positions, numTokens);
  checkLength("slots", plan.slots, numTokens);
  checkLength("queryStarts", plan.queryStarts, numSequences + 1);
  checkLength("contextLengths", plan.contextLengths, numSequences);
  checkLength("blockTableStarts", plan.blockTableStarts, numSequences + 1);
  if (plan.adapters !== undefined && plan.adapters.length < numSequences)
    fail(`adapters has ${plan.adapters.length} elements; the step needs ${numSequences}.`);
  checkTokens(plan, program);
  checkSequences(plan, cache);
  checkSight(plan);
  checkGiven(plan, program);
  checkReceived(plan, program.spec);
  checkStepStates(plan, program, cache.states);
  checkPart(plan);
  checkOutputs(plan, program);
}

function checkCacheFits(program: CheckedProgram, cache: KvCacheSpec): void {
  for (const [index, needs] of program.kvLayers.entries()) {
    const has = cache.layers[index];
    // Layers that no op names have any shape.
    if (needs === undefined || (has !== undefined && isSameKvLayer(has, needs))) continue;
    fail(
      `The program needs ${described(needs)} in layer ${index} of the KV cache, which has ${has === undefined ? "no such layer" : described(has)} there.`,
    );
  }
}

function described({ numKvHeads, headDim, isLatent }: KvLayerShape): string {
  return `${numKvHeads} ${isLatent === true ? "latent " : ""}kv heads of ${headDim}`;
}

function checkTokens(plan: StepPlan, { numEmbeddings, numPositions, numTypes }: CheckedProgram): void {
  const { numTokens, tokenIds, positions, tokenTypes } = plan;
  if (tokenTypes !== undefined) checkLength("tokenTypes", tokenTypes, numTokens);
  for (let token = 0; token < numTokens; token++) {
    const id = tokenIds[token] ?? -1;
    if (id < 0 || id >= numEmbeddings) {
      fail(`tokenIds[${token}] is ${id}; the vocabulary has ids 0 to ${numEmbeddings - 1}.`);
    }
    const position = positions[token] ?? -1;
    if (position < 0) fail(`positions[${token}] is ${position}; positions start at 0.`);
    if (position >= numPositions)
      fail(`positions[${token}] is ${position}; the model knows positions 0 to ${numPositions - 1}.`);
    const type = tokenTypes?.[token] ?? 0;
    if (type < 0 || type >= numTypes)
      fail(`tokenTypes[${token}] is ${type}; the model knows types 0 to ${numTypes - 1}.`);
  }
}

function checkSequences(plan: StepPlan, cache: KvCacheSpec): void {
  const { numTokens, numSequences, queryStarts, contextLengths, blockTables, blockTableStarts, slots } = plan;
  const { blockSize, numBlocks } = cache;
  if (queryStarts[0] !== 0 || queryStarts[numSequences] !== numTokens) {
    fail(
      `queryStarts must run from 0 to numTokens (${numTokens}), not from ${queryStarts[0]} to ${queryStarts[numSequences]}.`,
    );
  }
  for (let sequence = 0; sequence < numSequences; sequence++) {
    const start = queryStarts[sequence] ?? 0;
    const end = queryStarts[sequence + 1] ?? 0;
    const tableStart = blockTableStarts[sequence] ?? -1;
    const tableEnd = blockTableStarts[sequence + 1] ?? -1;
    const contextLength = contextLengths[sequence] ?? 0;
    if (end <= start || end > numTokens)
      fail(`Sequence ${sequence} has the queries ${start} to ${end}; it needs at least one.`);
    if (contextLength < end - start) {
      fail(
        `Sequence ${sequence} has ${end - start} queries, more than its context length of ${contextLength}.`,
      );
    }
    if (tableStart < 0 || tableEnd < tableStart || tableEnd > blockTables.length) {
      fail(
        `Sequence ${sequence} has its blocks at ${tableStart} to ${tableEnd} of blockTables, which has ${blockTables.length}.`,
      );
    }
    if ((tableEnd - tableStart) * blockSize < contextLength) {
      fail(
        `Sequence ${sequence} has ${tableEnd - tableStart} blocks of ${blockSize} for a context of ${contextLength}.`,
      );
    }
    for (let index = tableStart; index < tableEnd; index++) {
      const block = blockTables[index] ?? -1;
      if (block < 0 || block >= numBlocks)
        fail(`blockTables[${index}] is ${block}; the cache has blocks 0 to ${numBlocks - 1}.`);
    }
    for (let token = start; token < end; token++) {
      const position = contextLength - end + token;
      const block = blockTables[tableStart + Math.floor(position / blockSize)] ?? 0;
      const slot = block * blockSize + (position % blockSize);
      if (slots[token] !== slot) {
        fail(
          `slots[${token}] is ${slots[token]}; position ${position} of sequence ${sequence} lies in slot ${slot}.`,
        );
      }
    }
  }
}

function checkPart({ part, outputs }: StepPlan): void {
  if (part === undefined) return;
  checkInteger("part.count", part.count, 1, 2 ** 16);
  checkInteger("part.index", part.index, 0, part.count - 1);
  if (part.index < part.count - 1 && outputs.length > 0)
    fail("Only the last part of a step has output rows.");
}

function checkSight({ lastSeen, numTokens, numSequences, queryStarts, contextLengths }: StepPlan): void {
  if (lastSeen === undefined) return;
  checkLength("lastSeen", lastSeen, numTokens);
  for (let sequence = 0; sequence < numSequences; sequence++) {
    const [start = 0, end = 0] = queryStarts.subarray(sequence, sequence + 2);
    const length = contextLengths[sequence] ?? 0;
    for (let token = start; token < end; token++) {
      const last = lastSeen[token] ?? -1;
      if (last >= length - end + token && last < length) continue;
      fail(
        `lastSeen[${token}] is ${last}; the token stands at ${length - end + token} of ${length} in its sequence.`,
      );
    }
  }
}

function checkGiven({ given, axes, numTokens }: StepPlan, { givenWidth, addedWidths }: CheckedProgram): void {
  if (axes !== undefined) checkLength("axes", axes, 3 * numTokens);
  if (given === undefined) return;
  const { tokens, rows, added } = given;
  const addedLength = addedWidths.reduce((sum, width) => sum + width, 0) * tokens.length;
  if ((added?.length ?? 0) !== addedLength)
    fail(`given.added has ${added?.length ?? 0} elements; the program adds ${addedLength}.`);
  if (!(tokens instanceof Int32Array) || !(rows instanceof Float32Array))
    fail("given must have tokens as an Int32Array and rows as a Float32Array.");
  if (givenWidth === 0) fail("The program takes no given rows.");
  if (rows.length !== tokens.length * givenWidth)
    fail(`given.rows has ${rows.length} elements; ${tokens.length} rows of ${givenWidth} are needed.`);
  for (const [index, token] of tokens.entries()) {
    if (token > (tokens[index - 1] ?? -1) && token < numTokens) continue;
    fail(
      `given.tokens[${index}] is ${token}; they must ascend and name one of the step's ${numTokens} tokens.`,
    );
  }
}

function checkOutputs(plan: StepPlan, program: CheckedProgram): void {
  const { outputs, outputTokens, numTokens } = plan;
  if (outputs.length > program.maxTokens)
    fail(`A step has at most ${program.maxTokens} output rows, not ${outputs.length}.`);
  checkLength("outputTokens", outputTokens, outputs.length);
  if (plan.wantLogits === true && outputs.length * program.vocabSize > mostLogits) {
    fail(
      `wantLogits returns at most ${mostLogits} values; ${outputs.length} rows of ${program.vocabSize} are more.`,
    );
  }
  let states: Set<SamplerState> | undefined;
  let previous = 0;
  let sequence = 0;
  for (let row = 0; row < outputs.length; row++) {
    const token = outputTokens[row] ?? -1;
    if (token < previous || token >= numTokens) {
      fail(
        `outputTokens[${row}] is ${token}; they must ascend and name one of the step's ${numTokens} tokens.`,
      );
    }
    previous = token;
    const output = outputs[row];
    if (output === undefined) return fail(`outputs[${row}] is missing.`);
    checkOutput(row, output, program.vocabSize);
    if (output.kind === "score") continue;
    while ((plan.queryStarts[sequence + 1] ?? numTokens) <= token) sequence += 1;
    if (output.kind === "hidden") {
      if (output.pool === undefined) continue;
      if (!program.gathers) fail(`outputs[${row}] is pooled, but the program gathers no rows.`);
      const most = token + 1 - (plan.queryStarts[sequence] ?? 0);
      if (!isInteger(output.pool.tokens, 1, most))
        checkInteger(`outputs[${row}].pool.tokens`, output.pool.tokens, 1, most);
      continue;
    }
    const before =
      output.afterDraft === true ? checkAfterDraft(row, plan, plan.queryStarts[sequence] ?? 0) : undefined;
    if (output.sampling.state === undefined || output.sampling.state === before?.sampling.state) continue;
    states ??= new Set();
    if (states.has(output.sampling.state))
      fail(`outputs[${row}] shares its sampler state with another row of the step.`);
    states.add(output.sampling.state);
  }
}

/** Returns the row that the draft token predicts; queries of the row's sequence start at `start`. */
function checkAfterDraft(
  row: number,
  { outputs, outputTokens }: StepPlan,
  start: number,
): Extract<OutputRow, { kind: "sample" }> {
  const before = outputs[row - 1];
  const token = outputTokens[row] ?? 0;
  if (before?.kind === "sample" && token > start && outputTokens[row - 1] === token - 1) return before;
  return fail(
    `outputs[${row}] follows a draft token, but the row before it does not sample from the token before its own.`,
  );
}

function checkOutput(row: number, output: OutputRow, vocabSize: number): void {
  if (output.kind === "hidden") return;
  if (vocabSize === 0) fail(`outputs[${row}] asks for a token, but the program has no output head.`);
  if (output.numLogprobs !== undefined)
    checkField(row, "numLogprobs", output.numLogprobs, 0, Number.MAX_SAFE_INTEGER);
  if (output.kind === "score") return checkField(row, "target", output.target, 0, vocabSize - 1);
  const { temperature, topP, topK, minP, index, seed, mask } = output.sampling;
  checkRealField(row, "sampling.temperature", temperature, 0, Number.MAX_VALUE);
  checkRealField(row, "sampling.topP", topP, 0, 1);
  checkField(row, "sampling.topK", topK, 0, 2 ** 31 - 1);
  checkRealField(row, "sampling.minP", minP, 0, 1);
  checkField(row, "sampling.index", index, 0, 2 ** 31 - 1);
  if (mask !== undefined) checkMask(row, mask, vocabSize);
  if (typeof seed !== "bigint") fail(`outputs[${row}].sampling.seed must be a bigint, not ${typeof seed}.`);
  if (output.logprobIds === undefined) return;
  for (const id of output.logprobIds)
    checkInteger(`An id of outputs[${row}].logprobIds`, id, 0, vocabSize - 1);
}

// Names are made for what is wrong alone: these run for every field of every row of every step.

function checkField(row: number, field: string, value: number, least: number, most: number): void {
  if (!isInteger(value, least, most)) checkInteger(`outputs[${row}].${field}`, value, least, most);
}

function checkRealField(row: number, field: string, value: number, least: number, most: number): void {
  if (!isReal(value, least, most)) checkReal(`outputs[${row}].${field}`, value, least, most);
}

function checkMask(row: number, mask: Uint32Array, vocabSize: number): void {
  const numWords = Math.ceil(vocabSize / 32);
  if (!(mask instanceof Uint32Array)) fail(`outputs[${row}].sampling.mask must be a Uint32Array.`);
  if (mask.length !== numWords)
    fail(`outputs[${row}].sampling.mask has ${mask.length} words; the vocabulary needs ${numWords}.`);
}

function checkLength(name: string, array: Int32Array, least: number): void {
  if (!(array instanceof Int32Array)) fail(`${name} must be an Int32Array.`);
  if (array.length < least) fail(`${name} has ${array.length} elements; the step needs ${least}.`);
}
