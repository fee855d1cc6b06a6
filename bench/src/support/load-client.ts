// The client process of a benchmark: runs the load test given as JSON and prints its report as JSON.
import { loadTest, type LoadTestOptions } from "@octavo/loadtest";

const options: LoadTestOptions = JSON.parse(process.argv[2] ?? "{}");
process.stdout.write(JSON.stringify(await loadTest(options)));
