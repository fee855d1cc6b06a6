import { createCpuBackend } from "@octavo/kernels";
import { adapterOracleSuite } from "../testing/oracles/adapter-oracle-suite.js";
import { ggufOracleSuite } from "../testing/oracles/gguf-oracle-suite.js";
import { modelOracleSuite } from "../testing/oracles/model-oracle-suite.js";
import { quantizedOracleSuite } from "../testing/oracles/quantized-oracle-suite.js";

adapterOracleSuite("native", () => createCpuBackend({ numThreads: 2 }));
modelOracleSuite("native", () => createCpuBackend({ numThreads: 2 }), "bf16");
ggufOracleSuite("native", () => createCpuBackend({ numThreads: 2 }));
quantizedOracleSuite("native", () => createCpuBackend({ numThreads: 2 }), 0.15);
