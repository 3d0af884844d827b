// Counts the outcomes of a suite in cargo's form, and compares them with the failures that are expected.
//
// `expected.txt` beside the suite has a test and the reason on each line, with two blanks or more between. Such a test has
// to fail; one that passes, or that did not run, makes the suite fail, so that the list only shrinks.
import fs from 'node:fs';

function readExpected(file) {
  const lines = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split('\n') : [];
  const rows = lines.filter((line) => line.trim() !== '' && !line.startsWith('#')).map((line) => line.split(/ {2,}/));
  const broken = rows.find(([, reason]) => !reason);
  if (broken) throw new Error(`${file}: a test, two blanks, a reason: ${broken}`);
  return new Map(rows);
}

export class Tally {
  constructor(file = 'expected.txt') {
    this.expected = readExpected(file);
    this.passed = 0;
    this.failed = 0;
    this.ignored = 0;
  }

  /// The lines that tell of one test; `trouble` says what went wrong, if anything did.
  judge(name, trouble) {
    const reason = this.expected.get(name);
    this.expected.delete(name);
    if (reason !== undefined && trouble !== undefined) {
      this.ignored += 1;
      return `test ${name} ... ignored, fails as expected: ${reason}\n`;
    }
    if (reason !== undefined) return this.fail(name, 'it passes: take it out of expected.txt');
    if (trouble !== undefined) return this.fail(name, trouble);
    this.passed += 1;
    return `test ${name} ... ok\n`;
  }

  fail(name, trouble) {
    this.failed += 1;
    return `test ${name} ... FAILED\n${trouble}\n`;
  }

  /// The closing lines.
  close() {
    const stale = [...this.expected.keys()].map((name) => this.fail(name, 'expected.txt names it, but it did not run'));
    const verdict = this.failed === 0 ? 'ok' : 'FAILED';
    return `${stale.join('')}\ntest result: ${verdict}. ${this.passed} passed; ${this.failed} failed; ${this.ignored} ignored\n`;
  }
}
