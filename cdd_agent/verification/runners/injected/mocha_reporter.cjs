// A reporter for mocha that writes each test as a line of JSON, and prints what mocha's usual reporter prints.
const { realpathSync } = require("node:fs");
const { createRequire } = require("node:module");
const { write } = require("./report.cjs");

// since mocha 12 a module with names
const spec = createRequire(realpathSync(process.argv[1]))("../lib/reporters/spec.js");
const Spec = spec.Spec ?? spec;

module.exports = class extends Spec {
  constructor(runner, options) {
    super(runner, options);
    const lines = [];
    const add = (result) => (test, error) => {
      const text = error ? String(error.stack ?? error) : "";
      lines.push({ file: test.file, names: test.titlePath(), result, text });
    };
    runner.on("pass", add("passed")).on("fail", add("failed")).on("pending", add("skipped"));
    runner.once("end", () => write(lines, true));
  }
};
