// Writes a report in lines of JSON. Each process has a file of its own.
const { writeFileSync } = require("node:fs");

exports.write = (tests, isWhole) => {
  const lines = tests.map((test) => ({ ...test, text: test.text.slice(0, 4000) }));
  if (isWhole) lines.push({ end: true });
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  writeFileSync(`${process.env.CDD_TEST_REPORT}-${process.pid}`, text);
};
