import { basename, dirname, join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { ArtifactFile, artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { Checkpoint, TensorInfo } from "../checkpoint/checkpoint.js";
import type { GgufFamily } from "../program/model-family.js";
import { architectureValues, findGgufFamily, readGgufConfig, type RopeFactors } from "./config.js";
import { readGgufHeader, type GgufHeader } from "./file.js";
import { huggingFaceName, isIgnoredGgufTensor, ropeFactorNames } from "./names.js";
import { readGgufTokenizer } from "./tokenizer.js";
import { GgufValues } from "./values.js";
import { tensorSlices } from "../checkpoint/tensor-slices.js";
import { storageOf } from "../checkpoint/tensor-storage.js";

const maxSplits = 4096;
const maxRopeFactors = 4096;

/** `name-00001-of-00003.gguf`, as llama.cpp's gguf-split writes it. */
interface SplitName {
  readonly prefix: string;
  readonly index: number;
  readonly count: number;
}

export function parseSplitName(fileName: string): SplitName | undefined {
  const match = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/i.exec(fileName);
  if (match === null) return undefined;
  return { prefix: match[1] ?? "", index: Number(match[2]), count: Number(match[3]) };
}

export function splitFileName(split: SplitName, index: number): string {
  const pad = (value: number): string => String(value).padStart(5, "0");
  return `${split.prefix}-${pad(index)}-of-${pad(split.count)}.gguf`;
}

/** Opens a GGUF file, or a split one by any of its parts. */
export function openGguf(path: string, name: string): Checkpoint {
  const headers = readSplits(path);
  const [first] = headers;
  if (first === undefined) throw artifactInvalid(path, "has no header");
  const { metadata } = first;
  const family = findGgufFamily(first.path, metadata);
  const numExperts = architectureValues(first.path, metadata).number("expert_count");
  const { tensors, ropeFactors } = collectTensors(headers, family.gguf, numExperts);
  const config = readGgufConfig({
    path: first.path,
    metadata,
    tensors,
    ropeFactors,
    family,
    dtype: storageOf(tensors.values()),
  });
  return {
    format: "gguf",
    name,
    path,
    config,
    generation: {},
    tensors,
    tokenizer: readGgufTokenizer(first.path, metadata),
  };
}

/** The one GGUF model of a folder. Projectors of multimodal models (mmproj-*) are not models of their own. */
export function chooseGguf(folder: string, files: readonly string[]): string | undefined {
  const models = files.filter((file) => /\.gguf$/i.test(file) && !/^mmproj/i.test(file));
  const heads = models.filter((file) => (parseSplitName(file)?.index ?? 1) === 1);
  if (heads.length > 1) {
    throw artifactInvalid(
      folder,
      `holds ${heads.length} GGUF models; name one of ${heads.toSorted().slice(0, 20).join(", ")}`,
    );
  }
  return heads[0] ?? models[0];
}

/** The headers of a GGUF file, or of all files of the set it is a split of. */
export function readSplits(path: string): GgufHeader[] {
  const split = parseSplitName(basename(path));
  if (split === undefined) {
    const header = readGgufHeader(path);
    const count = splitValues(header).number("count") ?? 1;
    if (count > 1)
      throw artifactInvalid(
        path,
        `is one of ${count} split files, but its name does not end in -00001-of-0000${count}.gguf`,
      );
    return [header];
  }
  if (split.count < 1 || split.count > maxSplits || split.index < 1 || split.index > split.count) {
    throw artifactInvalid(path, `has a name that claims part ${split.index} of ${split.count}`);
  }
  const headers: GgufHeader[] = [];
  for (let index = 1; index <= split.count; index++) {
    headers.push(readSplit(join(dirname(path), splitFileName(split, index)), index, split.count));
  }
  const declared = headers[0] && splitValues(headers[0]).number("tensors.count");
  const found = headers.reduce((sum, header) => sum + header.tensors.length, 0);
  if (declared !== undefined && declared !== found) {
    throw artifactInvalid(
      path,
      `and its sibling files hold ${found} tensors; the first of them says ${declared}`,
    );
  }
  return headers;
}

function readSplit(path: string, index: number, count: number): GgufHeader {
  let header: GgufHeader;
  try {
    header = readGgufHeader(path);
  } catch (error) {
    if (!(error instanceof OctavoError) || error.code !== "artifact_not_found") throw error;
    throw new OctavoError(
      "artifact_not_found",
      `${path}: part ${index} of ${count} of a split GGUF model is missing`,
      {
        cause: error,
      },
    );
  }
  const values = splitValues(header);
  const saidIndex = values.number("no");
  const saidCount = values.number("count");
  if (
    (saidIndex !== undefined && saidIndex + 1 !== index) ||
    (saidCount !== undefined && saidCount !== count)
  ) {
    throw artifactInvalid(
      path,
      `says it is part ${(saidIndex ?? 0) + 1} of ${saidCount}, its name says ${index} of ${count}`,
    );
  }
  return header;
}

function splitValues(header: GgufHeader): GgufValues {
  return new GgufValues(header.path, header.metadata, "split");
}

function collectTensors(
  headers: readonly GgufHeader[],
  { architecture, layerNames, layers }: GgufFamily,
  numExperts: number | undefined,
): { tensors: ReadonlyMap<string, TensorInfo>; ropeFactors: RopeFactors } {
  const tensors = new Map<string, TensorInfo>();
  const ropeFactors: { -readonly [K in keyof RopeFactors]: RopeFactors[K] } = {};
  for (const tensor of headers.flatMap((header) => header.tensors)) {
    const factors = factorKinds.get(tensor.name);
    if (factors !== undefined) {
      ropeFactors[factors] = readFactors(tensor);
      continue;
    }
    const usual = huggingFaceName(tensor.name, layerNames);
    const name = layers === undefined ? usual : usual?.replace(/^model\.layers(?=\.)/, layers);
    if (name === undefined) {
      if (isIgnoredGgufTensor(tensor.name)) continue;
      throw artifactUnsupported(
        tensor.path,
        `tensor ${JSON.stringify(tensor.name)} is not one that Octavo knows of a ${architecture} model`,
      );
    }
    for (const part of name.includes("*") ? perExpert(tensor, name, numExperts) : [{ ...tensor, name }]) {
      if (tensors.has(part.name))
        throw artifactInvalid(tensor.path, `holds tensor ${JSON.stringify(tensor.name)} again`);
      const known = asElsewhere(part);
      tensors.set(known.name, known);
    }
  }
  return { tensors, ropeFactors };
}

/** The tensors of each expert, of which GGUF keeps all in one; `name` has a `*` for the expert's index. */
function perExpert(tensor: TensorInfo, name: string, numExperts: number | undefined): TensorInfo[] {
  const { shape } = tensor;
  if (shape[0] !== numExperts || shape.length < 2) {
    throw artifactInvalid(
      tensor.path,
      `tensor ${JSON.stringify(tensor.name)} has the shape [${shape.join(", ")}]; with ${numExperts ?? "no"} experts (expert_count) its first dimension must be their number`,
    );
  }
  return tensorSlices(tensor).map((slice, index) => ({ ...slice, name: name.replace("*", String(index)) }));
}

/** The shared expert's gate is a vector in GGUF, a matrix of one row elsewhere; sinks are no `weight` elsewhere. */
function asElsewhere(tensor: TensorInfo): TensorInfo {
  if (tensor.name.endsWith(".sinks.weight"))
    return { ...tensor, name: tensor.name.slice(0, -".weight".length) };
  const isGate = tensor.name.endsWith(".shared_expert_gate.weight") && tensor.shape.length === 1;
  return isGate ? { ...tensor, shape: [1, ...tensor.shape] } : tensor;
}

const factorKinds: ReadonlyMap<string, keyof RopeFactors> = new Map(
  Object.entries(ropeFactorNames).map(([kind, name]) => [name, kind as keyof RopeFactors]),
);

function readFactors(tensor: TensorInfo): Float32Array {
  const length = tensor.shape.reduce((product, size) => product * size, 1);
  if (tensor.type !== "f32" || length > maxRopeFactors) {
    throw artifactInvalid(tensor.path, `has ${tensor.name} as ${tensor.type} [${tensor.shape.join(", ")}]`);
  }
  const file = ArtifactFile.open(tensor.path);
  try {
    const bytes = file.read(tensor.offset, tensor.byteLength);
    return Float32Array.from({ length }, (_, i) => bytes.readFloatLE(i * 4));
  } finally {
    file[Symbol.dispose]();
  }
}
