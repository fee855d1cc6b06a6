import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { constants, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import type { Gpu } from "../device/gpu.js";
import { type GpuOptions, openGpu } from "../device/open-gpu.js";
import { emulatedUnit } from "../wgsl/matrix-unit.js";

/** RTLD_NODELETE: the library stays when Node finds that it is no addon. */
const keepLoaded = 0x1000;

/**
 * Opens SwiftShader, from the development package `@sparticuz/chromium`, or the reason why that cannot be. With OCTAVO_TEST_GPU set, the
 * machine's own adapter is opened instead.
 */
export async function openTestGpu(options: GpuOptions = {}): Promise<Gpu | string> {
  try {
    if (process.env["OCTAVO_TEST_GPU"] === undefined) loadSwiftShader();
    return await openGpu(options);
  } catch (error) {
    return `no WebGPU adapter: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** One that multiplies on matrix units; where the adapter has none, its lanes do it in their place. */
export async function openMatrixGpu(): Promise<Gpu | string> {
  const gpu = await openTestGpu({ matrixUnits: true });
  return typeof gpu === "string" ? openTestGpu({ matrixUnits: emulatedUnit(8, 8) }) : gpu;
}

function loadSwiftShader(): void {
  const folder = unpackedSwiftShader();
  process.env["VK_DRIVER_FILES"] = join(folder, "vk_swiftshader_icd.json");
  const flags = constants.dlopen.RTLD_NOW | keepLoaded;
  try {
    process.dlopen({ exports: {} }, join(folder, "libvulkan.so.1"), flags);
  } catch {
    // Node refuses what is no addon, but the loader that Dawn asks for by name is in the process now.
  }
}

function unpackedSwiftShader(): string {
  const require = createRequire(import.meta.url);
  const home = join(dirname(require.resolve("@sparticuz/chromium")), "..");
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { version: string };
  const folder = join(tmpdir(), `octavo-swiftshader-${version}`);
  if (existsSync(folder)) return folder;
  const work = `${folder}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  const archive = join(work, "swiftshader.tar");
  writeFileSync(archive, brotliDecompressSync(readFileSync(join(home, "bin", "swiftshader.tar.br"))));
  execFileSync("tar", ["-xf", archive, "-C", work]);
  rmSync(archive);
  try {
    renameSync(work, folder);
  } catch {
    // Another process was faster.
    rmSync(work, { recursive: true, force: true });
  }
  return folder;
}
