// A reporter for `node --test` that writes each test as a line of JSON.
import { write } from "./report.cjs";

export default async function* report(source) {
  const lines = [];
  const around = new Map(); // of each file, the names of the tests and groups that have begun, by their depth
  for await (const { type, data } of source) {
    if (!["test:start", "test:pass", "test:fail"].includes(type)) continue;
    const { file, name, nesting = 0 } = data;
    const names = [...(around.get(file) ?? []).slice(0, nesting), name];
    if (type === "test:start") {
      around.set(file, names);
      continue;
    }
    const error = data.details?.error;
    const isGroup = data.details?.type === "suite";
    if (isGroup && (type === "test:pass" || error?.failureType === "subtestsFailed")) continue;
    const isOut = (flag) => flag !== undefined && flag !== false;
    const result = isOut(data.skip) || isOut(data.todo) ? "skipped" : type === "test:pass" ? "passed" : "failed";
    const text = result === "failed" ? String(error?.cause?.stack ?? error?.cause ?? error ?? "") : "";
    lines.push({ file, names, result, text });
  }
  write(lines, true);
  yield "";
}
