// A reporter for Jest that writes each test as a line of JSON.
const { write } = require("./report.cjs");

const textOf = (messages) => (messages ?? []).join("\n");

module.exports = class {
  onRunComplete(_contexts, run) {
    const lines = [];
    for (const { testFilePath: file, testResults, testExecError, failureMessage } of run.testResults) {
      for (const { ancestorTitles, title, status, failureMessages } of testResults) {
        const result = ["passed", "failed"].includes(status) ? status : "skipped";
        lines.push({ file, names: [...ancestorTitles, title], result, text: textOf(failureMessages) });
      }
      if (testExecError) lines.push({ file, names: [], result: "failed", text: failureMessage ?? "" });
    }
    write(lines, !run.wasInterrupted);
  }
};
