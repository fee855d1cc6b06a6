import { createCpuBackend } from "@octavo/kernels";
import { adapterOracleSuite } from "../testing/adapter-oracle-suite.js";
import { ggufOracleSuite } from "../testing/gguf-oracle-suite.js";
import { modelOracleSuite } from "../testing/model-oracle-suite.js";
import { quantizedOracleSuite } from "../testing/quantized-oracle-suite.js";

adapterOracleSuite("native", () => createCpuBackend({ numThreads: 2 }));
modelOracleSuite("native", () => createCpuBackend({ numThreads: 2 }), "bf16");
ggufOracleSuite("native", () => createCpuBackend({ numThreads: 2 }));
quantizedOracleSuite("native", () => createCpuBackend({ numThreads: 2 }), 0.15);
