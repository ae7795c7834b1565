// A reporter for vitest that writes each test as a line of JSON.
import { write } from "./report.cjs";

const textOf = (result) => (result?.errors ?? []).map((error) => error.stack ?? error.message ?? "").join("\n");

function* read(task, file, around) {
  const names = task.type === "suite" && task.filepath ? around : [...around, task.name];
  for (const inner of task.tasks ?? []) yield* read(inner, file, names);
  const state = task.result?.state;
  const isTest = task.tasks === undefined;
  const failedAsWhole = state === "fail" && task.result.errors?.length;
  if (!isTest && !failedAsWhole) return;
  const result = state === "pass" ? "passed" : state === "fail" ? "failed" : "skipped";
  yield { file, names, result, text: textOf(task.result) };
}

export default class {
  // vitest 3 calls this and, as older ones do, `onFinished`
  onTestRunEnd(modules, _errors, reason) {
    this.finish(modules.map((module) => module.task), reason !== "interrupted");
  }

  onFinished(files = []) {
    this.finish(files, true);
  }

  finish(files, isWhole) {
    if (this.isWritten) return;
    this.isWritten = true;
    write(files.flatMap((file) => [...read(file, file.filepath, [])]), isWhole);
  }
}
