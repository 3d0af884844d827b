// Prints node:test's outcomes in the form that cargo gives its own, so that `./test` counts them alike.
//
// One line a test; a suite (a `describe`, or the file) is not a test and only lends its name. What a failure threw follows it.
import { Tally } from './tally.mjs';

const isSuite = (data) => data.details?.type === 'suite';
const hasFailedItself = (data) => !isSuite(data) || data.details.error?.failureType !== 'subtestsFailed';

export default async function* report(source) {
  const tally = new Tally();
  const path = [];
  for await (const { type, data } of source) {
    if (type === 'test:start') {
      path.length = data.nesting;
      path.push(data.name);
    }
    const name = () => [...path.slice(0, data.nesting), data.name].join(': ');
    if (type === 'test:fail' && hasFailedItself(data)) {
      const cause = data.details.error?.cause ?? data.details.error;
      yield tally.judge(name(), cause?.stack ?? String(cause));
    } else if (type === 'test:pass' && !isSuite(data)) {
      yield tally.judge(name());
    }
  }
  yield tally.close();
  process.exitCode = tally.failed === 0 ? 0 : 1;
}
