import type { TokenizerFileConfig } from "../source.js";
import type {
  AddedTokenSpecification,
  PairTemplate,
  PostProcessorSpecification,
  ReadTokenizer,
  TokenizerSpecification,
} from "../specification.js";
import type { TokenTable } from "../token-table.js";
import { JsonReader } from "./json-reader.js";
import { readModel, vocabularyLimit } from "./model-json.js";
import { readDecoder, readNormalizer, readPreTokenizer } from "./pipeline-json.js";

/**
 * Reads Hugging Face's tokenizer.json (its content, parsed). Throws `artifact_invalid` for malformed content and
 * `artifact_unsupported` for parts that are not implemented, each with the path inside the file.
 */
export function readTokenizerJson(json: unknown, config: TokenizerFileConfig): ReadTokenizer {
  const root = new JsonReader(json, "tokenizer.json");
  const { vocabulary, table, model } = readModel(root.get("model"));
  const addedTokens = readAddedTokens(root.get("added_tokens"), table);
  const addedIdOf = new Map(addedTokens.map((token) => [token.content, token.id]));
  const lookUp = (token: string | undefined): number | undefined =>
    token === undefined ? undefined : (addedIdOf.get(token) ?? table.idOf(token));
  const bosTokenId = lookUp(config.bosToken);
  const eosTokenId = lookUp(config.eosToken);
  const largestId = addedTokens.reduce((largest, token) => Math.max(largest, token.id), table.size - 1);
  const specification: TokenizerSpecification = {
    vocabulary,
    model,
    addedTokens,
    normalizer: readNormalizer(root.get("normalizer")),
    preTokenizer: readPreTokenizer(root.get("pre_tokenizer")),
    decoder: readDecoder(root.get("decoder")),
    postProcessor: readPostProcessor(root.get("post_processor"), largestId + 1),
    bosTokenId,
    eosTokenId,
  };
  return { specification, table };
}

function readAddedTokens(reader: JsonReader, table: TokenTable): AddedTokenSpecification[] {
  if (reader.isAbsent) return [];
  const byContent = new Map<string, AddedTokenSpecification>();
  const contentOf = new Map<number, string>();
  for (const item of reader.items()) {
    const content = item.get("content").string();
    if (content === "") continue;
    const declared = item.get("id").index(vocabularyLimit);
    // the reference takes the model's id for a token that the model already has
    const id = table.idOf(content) ?? declared;
    const owner = contentOf.get(id) ?? table.token(id);
    if (owner !== undefined && owner !== content) {
      throw item.fail(
        `gives ${JSON.stringify(content)} the id ${id}, which is already ${JSON.stringify(owner)}`,
      );
    }
    contentOf.set(id, content);
    byContent.set(content, {
      id,
      content,
      special: item.get("special").boolean(false),
      singleWord: item.get("single_word").boolean(false),
      stripLeft: item.get("lstrip").boolean(false),
      stripRight: item.get("rstrip").boolean(false),
      normalized: item.get("normalized").boolean(!item.get("special").boolean(false)),
    });
  }
  return [...byContent.values()];
}

function readPostProcessor(reader: JsonReader, idLimit: number): PostProcessorSpecification {
  const nothing: PostProcessorSpecification = {
    before: [],
    after: [],
    pair: { before: [], between: [], after: [], hasTypes: false },
  };
  if (reader.isAbsent) return nothing;
  const type = reader
    .get("type")
    .oneOf(["TemplateProcessing", "ByteLevel", "Sequence", "BertProcessing", "RobertaProcessing"]);
  switch (type) {
    case "ByteLevel":
      return nothing;
    case "Sequence":
      return reader
        .get("processors")
        .items()
        .map((item) => readPostProcessor(item, idLimit))
        .reduce(
          (inner, outer) => ({
            before: [...outer.before, ...inner.before],
            after: [...inner.after, ...outer.after],
            pair: inner.pair &&
              outer.pair && {
                before: [...outer.pair.before, ...inner.pair.before],
                between: [...inner.pair.between, ...outer.pair.between],
                after: [...inner.pair.after, ...outer.pair.after],
                hasTypes: inner.pair.hasTypes || outer.pair.hasTypes,
              },
          }),
          nothing,
        );
    case "TemplateProcessing":
      return readTemplate(reader, idLimit);
    case "BertProcessing":
    case "RobertaProcessing": {
      const idOf = (key: string): number =>
        new JsonReader(reader.get(key).array()[1], `${reader.path}.${key}[1]`).index(idLimit);
      const [before, after] = [[idOf("cls")], [idOf("sep")]];
      const isBert = type === "BertProcessing";
      const between = isBert ? after : [...after, ...after];
      return { before, after, pair: { before, between, after, hasTypes: isBert } };
    }
  }
}

/** `single` as a list of special tokens around the one sequence. */
function readTemplate(reader: JsonReader, idLimit: number): PostProcessorSpecification {
  const before: number[] = [];
  const after: number[] = [];
  let sequences = 0;
  const single = reader.get("single");
  for (const item of single.items()) {
    if (!item.get("Sequence").isAbsent) {
      sequences++;
      continue;
    }
    const name = item.get("SpecialToken").get("id").string();
    const ids = reader.get("special_tokens").get(name).get("ids").items();
    (sequences === 0 ? before : after).push(...ids.map((id) => id.index(idLimit)));
  }
  if (sequences !== 1) {
    throw single.fail(`must hold the sequence once, but holds it ${sequences} times`, "artifact_unsupported");
  }
  return { before, after, pair: readPairTemplate(reader, idLimit) };
}

/** `pair`, where it is the first text and then the second one, with the types that models know. */
function readPairTemplate(reader: JsonReader, idLimit: number): PairTemplate | undefined {
  const pair = reader.get("pair");
  if (pair.isAbsent) return undefined;
  const parts: [number[], number[], number[]] = [[], [], []];
  const typesOf: Set<unknown>[] = [new Set(), new Set()];
  let place: 0 | 1 | 2 = 0;
  for (const item of pair.items()) {
    const sequence = item.get("Sequence");
    if (!sequence.isAbsent) {
      if (place === 2 || sequence.get("id").value !== (place === 0 ? "A" : "B")) return undefined;
      place = place === 0 ? 1 : 2;
      typesOf[place - 1]?.add(sequence.get("type_id").value);
      continue;
    }
    const special = item.get("SpecialToken");
    typesOf[place === 2 ? 1 : 0]?.add(special.get("type_id").value);
    const ids = reader.get("special_tokens").get(special.get("id").string()).get("ids").items();
    parts[place].push(...ids.map((id) => id.index(idLimit)));
  }
  const [first, second] = typesOf.map((types) => (types.size === 1 ? [...types][0] : undefined));
  // A special token behind a second text that has no type of its own is of type 0 all the same.
  if (place !== 2 || first !== 0 || (second !== 0 && second !== 1)) return undefined;
  const [before, between, after] = parts;
  return { before, between, after, hasTypes: second === 1 };
}
