import { adapterOracleSuite } from "../testing/oracles/adapter-oracle-suite.js";
import { ggufOracleSuite } from "../testing/oracles/gguf-oracle-suite.js";
import { modelOracleSuite } from "../testing/oracles/model-oracle-suite.js";
import { quantizedOracleSuite } from "../testing/oracles/quantized-oracle-suite.js";
import { ReferenceBackend } from "../testing/reference/reference-backend.js";

adapterOracleSuite("reference", () => new ReferenceBackend());
modelOracleSuite("reference", () => new ReferenceBackend());
ggufOracleSuite("reference", () => new ReferenceBackend());
quantizedOracleSuite("reference", () => new ReferenceBackend(), 1e-4);
