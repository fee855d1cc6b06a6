import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { CpuOptions } from "../flags.js";
import type { Contender } from "./contender.js";
import { hasServer, llamaCpp } from "./llama-cpp.js";
import { findNodeLlamaCpp } from "./node-llama-cpp.js";
import { openvino, pythonPeer, pythonPeerVersion, vllm } from "./python-peers.js";

export interface Peers {
  readonly native: readonly Contender[];
  /** Built for machines without AVX-512. */
  readonly avx2: readonly Contender[];
  /** What they call themselves. */
  readonly versions: Readonly<Record<string, string>>;
  readonly openvinoPython: string | undefined;
  /** Where there is a llama-server, whose answers are checked. */
  readonly serverFolder: string | undefined;
}

/** The peers that are here; says which are not, and how they would be found. */
export function findPeers(options: CpuOptions, say: (text: string) => void): Peers {
  const { llamaCppFolder, llamaCppAvx2Folder, openvinoPython, vllmPython, isTuned } = options;
  const inPython = [[openvino, openvinoPython] as const, [vllm, vllmPython] as const].flatMap(
    ([peer, python]) => (python === undefined ? [] : [[peer, python] as const]),
  );
  const nodeLlamaCpp = options.withNodeLlamaCpp ? findNodeLlamaCpp(isTuned) : undefined;
  const native = [
    ...(llamaCppFolder === undefined ? [] : [llamaCpp(llamaCppFolder, isTuned)]),
    ...(nodeLlamaCpp === undefined ? [] : [nodeLlamaCpp.contender]),
    ...inPython.map(([peer, python]) => pythonPeer(peer, python, isTuned)),
  ];
  if (llamaCppFolder === undefined)
    say("llama.cpp is left out: name the folder of its tools with --llama-cpp");
  if (options.withNodeLlamaCpp && nodeLlamaCpp === undefined) {
    say("node-llama-cpp is left out: install it, or name the folder that holds it in NODE_LLAMA_CPP_DIR");
  }
  if (llamaCppFolder !== undefined && !hasServer(llamaCppFolder)) {
    say(
      `there is no llama-server in ${llamaCppFolder}: its answers are not checked, and cases over HTTP have no peer`,
    );
  }
  if (options.groups.includes("avx2") && llamaCppAvx2Folder === undefined) {
    say("the avx2 cases have no peer: name a build without AVX-512 with --llama-cpp-avx2");
  }
  return {
    native,
    avx2: llamaCppAvx2Folder === undefined ? [] : [llamaCpp(llamaCppAvx2Folder, isTuned)],
    versions: {
      ...(llamaCppFolder !== undefined && { "llama.cpp": llamaCppVersion(llamaCppFolder) }),
      ...(nodeLlamaCpp !== undefined && { "node-llama-cpp": nodeLlamaCpp.version }),
      ...Object.fromEntries(inPython.map(([peer, python]) => [peer.name, pythonPeerVersion(peer, python)])),
    },
    openvinoPython,
    serverFolder: llamaCppFolder !== undefined && hasServer(llamaCppFolder) ? llamaCppFolder : undefined,
  };
}

/** The first line of `--version`, which goes to stderr. */
function llamaCppVersion(folder: string): string {
  try {
    const script = 'exec "$0" --version 2>&1';
    const output = execFileSync(
      "sh",
      ["-c", script, join(folder, hasServer(folder) ? "llama-server" : "llama-batched-bench")],
      {
        encoding: "utf8",
        env: { ...process.env, LD_LIBRARY_PATH: folder },
      },
    );
    return /^version:\s*(.+)$/m.exec(output)?.[1] ?? "unknown";
  } catch {
    return "unknown";
  }
}
