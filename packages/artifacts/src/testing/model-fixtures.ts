import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

/** What transformers computed for a tiny checkpoint; written by tools/oracle/make-model-fixtures.py. */
export interface ModelFixture {
  readonly name: string;
  /** Folder of the checkpoint whose weights it uses. */
  readonly checkpoint: string;
  /** Changes of that checkpoint's config.json; null deletes a field. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  /** f32 `[prompt, vocab]` */
  readonly logits: Float32Array;
  /** A prompt of several attention chunks, and the logits after its last token. */
  readonly long: { readonly prompt: readonly number[]; readonly logits: readonly number[] };
  readonly pooled: { readonly last: readonly number[]; readonly mean: readonly number[] };
}

/** What llama.cpp computed for a tiny GGUF file; written by tools/oracle/run-llama-cpp.mjs. */
export interface GgufFixture {
  readonly name: string;
  readonly path: string;
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  /** Each step's best tokens with their log-probabilities, best first. */
  readonly top: readonly (readonly (readonly [token: number, logprob: number])[])[];
}

const fixtures = fileURLToPath(new URL("../../fixtures", import.meta.url));

/** Folder of a fixture checkpoint, e.g. "llama3" or "qwen2" (sharded). */
export function fixtureCheckpoint(name: string): string {
  return join(fixtures, "models/checkpoints", name);
}

export function fixtureGguf(name: string): string {
  return join(fixtures, "gguf", `${name}.gguf`);
}

/** A file or folder of `fixtures/drafting`. */
export function fixtureDrafting(name: string): string {
  return join(fixtures, "drafting", name);
}

export function fixtureQuantized(name: string): string {
  return join(fixtures, "quantized", name);
}

export function readModelFixtures(): ModelFixture[] {
  const folder = join(fixtures, "models");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const name = basename(file, ".json");
      const expected = JSON.parse(readFileSync(join(folder, file), "utf8")) as Omit<
        ModelFixture,
        "name" | "logits"
      >;
      const bytes = readFileSync(join(folder, `${name}.logits`));
      return { ...expected, name, logits: new Float32Array(new Uint8Array(bytes).buffer) };
    });
}

export function readGgufFixtures(): GgufFixture[] {
  const folder = join(fixtures, "gguf");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const name = basename(file, ".json");
      const expected = JSON.parse(readFileSync(join(folder, file), "utf8")) as Omit<
        GgufFixture,
        "name" | "path"
      >;
      return { ...expected, name, path: fixtureGguf(name) };
    });
}

/** What transformers computed for a tiny checkpoint in a folder of its own. */
interface FolderFixture {
  readonly name: string;
  readonly path: string;
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  /** f32 `[prompt, vocab]` */
  readonly logits: Float32Array;
}

/** From the dequantised weights of quantised checkpoints; written by tools/oracle/make-quantized-fixtures.py. */
export function readQuantizedFixtures(): FolderFixture[] {
  return readFolderFixtures("quantized");
}

/** Text-only fixtures of multimodal models, written by tools/oracle/make-container-fixtures.py. */
export function readContainerFixtures(): FolderFixture[] {
  return readFolderFixtures("containers");
}

/** What transformers computed of prompts with images, and of images; written by tools/oracle/make-image-fixtures.py. */
interface ImageFixture {
  /** Names of files, for `fixtureImage`. */
  readonly images: readonly string[];
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  /** f32 `[prompt, vocab]` */
  readonly logits: Float32Array;
}

interface PixelFixture {
  readonly image: string;
  /** A preprocessor_config.json. */
  readonly settings: unknown;
  /** f32 `[3, height, width]` */
  readonly pixels: Float32Array;
}

/** An image, or the folder of a checkpoint that reads images. */
export function fixtureImage(name: string): string {
  return join(fixtures, "images", name);
}

export function readImageFixtures(): ImageFixture[] {
  return readListed("gemma3.json").map(
    (fixture) => ({ ...fixture, logits: floatsIn(fixture["logits"]) }) as ImageFixture,
  );
}

export function readPixelFixtures(): PixelFixture[] {
  return readListed("pixels.json").map(
    (fixture) => ({ ...fixture, pixels: floatsIn(fixture["pixels"]) }) as PixelFixture,
  );
}

interface PatchFixture {
  readonly image: string;
  readonly grid: readonly number[];
  readonly pixels: Float32Array;
}

/** `rows`, by image: f32 `[1 + deepstack, tokens, hidden]`. */
type ShapedFixture = ImageFixture & { readonly rows: readonly Float32Array[] };

/** Models of `fixtures/images` whose images keep their shape. */
export const shapedModels = ["qwen2-5-vl", "qwen3-vl", "qwen3-5", "qwen3-vl-moe", "qwen3-5-moe"] as const;

/** Prompts of one of `shapedModels` or of a Gemma 4; written by tools/oracle/make-qwen-image-fixtures.py and make-gemma4-image-fixtures.py. */
export function readShapedFixtures(model: string): ShapedFixture[] {
  return readListed(`${model}.json`).map(
    (fixture) =>
      ({
        ...fixture,
        logits: floatsIn(fixture["logits"]),
        rows: (fixture["rows"] as string[]).map(floatsIn),
      }) as unknown as ShapedFixture,
  );
}

/** Of Gemma 4: width, height, tokens at most, size of a patch and a pool; width and height that come of them. */
type SizeFixture = readonly [number, number, number, number, number, number, number];

/** Images as a processor cuts them, "qwen3-vl" or "gemma4"; written by the same, and by make-gemma4-image-fixtures.py. */
export function readPatchFixtures(processor: string): {
  readonly images: readonly PatchFixture[];
  readonly sizes: readonly SizeFixture[];
} {
  const { images, sizes = [] } = JSON.parse(
    readFileSync(fixtureImage(`${processor}-pixels.json`), "utf8"),
  ) as { readonly images: Record<string, unknown>[]; readonly sizes?: readonly SizeFixture[] };
  return {
    images: images.map(
      (image) => ({ ...image, pixels: floatsIn(image["pixels"]) }) as unknown as PatchFixture,
    ),
    sizes,
  };
}

function readListed(name: string): Record<string, unknown>[] {
  return JSON.parse(readFileSync(fixtureImage(name), "utf8")) as Record<string, unknown>[];
}

function floatsIn(name: unknown): Float32Array {
  return new Float32Array(new Uint8Array(readFileSync(fixtureImage(String(name)))).buffer);
}

function readFolderFixtures(kind: string): FolderFixture[] {
  const folder = join(fixtures, kind);
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const name = basename(file, ".json");
      const expected = JSON.parse(readFileSync(join(folder, file), "utf8")) as {
        readonly prompt: readonly number[];
        readonly greedy: readonly number[];
      };
      const bytes = readFileSync(join(folder, `${name}.logits`));
      return {
        ...expected,
        name,
        path: join(folder, name),
        logits: new Float32Array(new Uint8Array(bytes).buffer),
      };
    });
}

/** What sentence-transformers made of texts with a tiny model; written by tools/oracle/make-embedding-fixtures.py. */
interface EmbeddingFixture {
  readonly name: string;
  readonly path: string;
  readonly texts: readonly string[];
  readonly embeddings: readonly (readonly number[])[];
  /** The texts' embeddings under each prompt, of models that have prompts. */
  readonly prompted?: Readonly<Record<string, readonly (readonly number[])[]>>;
}

/** What a tiny model with a head that classifies gives; written by tools/oracle/make-encoder-fixtures.py. */
interface RerankerFixture {
  readonly name: string;
  readonly path: string;
  /** How the model is loaded, where it has no head of its own. */
  readonly scoreBy?: "yes-no";
  readonly pairs: readonly (readonly [query: string, text: string])[];
  readonly ids: readonly (readonly number[])[];
  readonly logits: readonly (readonly number[])[];
  /** CrossEncoder's; null for heads of several labels. */
  readonly scores: readonly number[] | null;
  readonly texts: readonly string[];
  readonly textLogits: readonly (readonly number[])[];
}

export function readRerankerFixtures(): RerankerFixture[] {
  const folder = join(fixtures, "rerankers");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const name = basename(file, ".json");
      const expected = JSON.parse(readFileSync(join(folder, file), "utf8")) as Omit<
        RerankerFixture,
        "name" | "path"
      >;
      return { ...expected, name, path: join(folder, name) };
    });
}

export function readEmbeddingFixtures(): EmbeddingFixture[] {
  const folder = join(fixtures, "embeddings");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const name = basename(file, ".json");
      const expected = JSON.parse(readFileSync(join(folder, file), "utf8")) as Pick<
        EmbeddingFixture,
        "texts" | "embeddings" | "prompted"
      >;
      const gguf = join(folder, `${name}.gguf`);
      return { ...expected, name, path: existsSync(gguf) ? gguf : join(folder, name) };
    });
}

/** What peft computed with a tiny adapter; written by tools/oracle/make-adapter-fixtures.py. */
export interface AdapterFixture {
  readonly name: string;
  /** Folder of the adapter. */
  readonly path: string;
  readonly checkpoint: string;
  readonly prompt: readonly number[];
  readonly greedy: readonly number[];
  /** f32 `[prompt, vocab]` */
  readonly logits: Float32Array;
}

export function fixtureAdapter(name: string): string {
  return join(fixtures, "adapters", name);
}

export function readAdapterFixtures(): AdapterFixture[] {
  const folder = join(fixtures, "adapters");
  return readdirSync(folder)
    .filter((file) => file.endsWith(".json"))
    .map((file) => {
      const name = basename(file, ".json");
      const expected = JSON.parse(readFileSync(join(folder, file), "utf8")) as Omit<
        AdapterFixture,
        "name" | "path" | "logits"
      >;
      const bytes = readFileSync(join(folder, `${name}.logits`));
      const logits = new Float32Array(new Uint8Array(bytes).buffer);
      return { ...expected, name, path: fixtureAdapter(name), logits };
    });
}

/** A copy of a fixture checkpoint in a temporary folder, with fields of its config.json changed. */
export class ChangedCheckpoint implements Disposable {
  readonly path: string;

  constructor(checkpoint: string, changes: Readonly<Record<string, unknown>>) {
    this.path = mkdtempSync(join(tmpdir(), "octavo-fixture-"));
    cpSync(fixtureCheckpoint(checkpoint), this.path, { recursive: true });
    const configPath = join(this.path, "config.json");
    const config = {
      ...(JSON.parse(readFileSync(configPath, "utf8")) as Record<string, unknown>),
      ...changes,
    };
    const kept = Object.entries(config).filter(([key]) => changes[key] !== null);
    writeFileSync(configPath, JSON.stringify(Object.fromEntries(kept)));
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
