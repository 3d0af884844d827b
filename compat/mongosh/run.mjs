// Types session.mjs into mongosh's prompt and checks what it prints, step by step.
//
// usage: node run.mjs [--page FILE] (PANDO_URI tells where the server is; --verbose prints what every step printed)
//
// With a page of the documentation, its blocks in `js` are typed instead: a line a step, and what stands behind ` // ` must be
// in what it prints.
// The shell gets its lines by a pipe and has a home directory of its own. A line that prints a mark goes before each step,
// so that the transcript can be cut. What the shell prints before the first prompt is a step as well: it must not warn.
// The closing lines have the form of cargo's.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { not, steps as session } from './session.mjs';
import { Tally } from './tally.mjs';

const uri = process.env.PANDO_URI ?? 'mongodb://127.0.0.1:27017/?directConnection=true';
const isVerbose = process.argv.includes('--verbose');
const page = process.argv.includes('--page') ? process.argv[process.argv.indexOf('--page') + 1] : undefined;
const steps = page === undefined ? session : stepsOf(page);
const SESSION_MILLISECONDS_MAX = 180_000;

/// What a person sees before the first prompt; mongosh adds warnings from `getLog startupWarnings` and about old servers.
const greeting = [/Connecting to:/, /Using MongoDB:\s+7\.0\./, /Using Mongosh:/, not(/warning/i), not(/error/i), not(/compatib/i)];

/// The shell's own remark on the version of Node that runs it.
const aboutNode = /^Deprecation warnings:\n(?:  - Using mongosh with Node\.js .*\n)+See .*\n/m;

/// The lines of a page's blocks, with what they must print.
function stepsOf(file) {
  const found = [];
  let isInside = false;
  fs.readFileSync(file, 'utf8').split('\n').forEach((line, at) => {
    if (line.startsWith('```')) { isInside = line === '```js'; return; }
    if (!isInside || line.trim() === '') return;
    const cut = line.indexOf(' // ');
    const [typed, wanted] = cut < 0 ? [line, ''] : [line.slice(0, cut), line.slice(cut + 4)];
    const contains = { test: (text) => text.replace(/\s+/g, ' ').includes(wanted), toString: () => wanted };
    // What is not said to print an error must not print one.
    const patterns = /error|fail|auth|confirm/i.test(wanted) ? [contains] : [contains, not(/Error/)];
    found.push([`${path.basename(file)}:${at + 1}`, typed, patterns]);
  });
  return found;
}

function transcript() {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), 'pando-mongosh-'));
  // Neither telemetry nor the check for updates: both would ask the network and print about it.
  fs.mkdirSync(path.join(home, '.mongodb', 'mongosh'), { recursive: true });
  fs.writeFileSync(path.join(home, '.mongodb', 'mongosh', 'config'), JSON.stringify({ enableTelemetry: false, updateURL: '', disableGreetingMessage: true }));
  const shell = spawn(process.execPath, ['node_modules/.bin/mongosh', uri, '--norc'], {
    env: { ...process.env, HOME: home, NO_COLOR: '1', MONGOSH_FORCE_TERMINAL: '' }, stdio: ['pipe', 'pipe', 'pipe'],
  });
  const lines = steps.flatMap(([, line], index) => [`print("@@${index}")`, line]);
  let text = '';
  shell.stdout.on('data', (part) => { text += part; });
  shell.stderr.on('data', (part) => { text += part; });
  shell.stdin.on('error', () => {});
  shell.stdin.end([...lines, 'print("@@end")', 'exit', ''].join('\n'));
  const timer = setTimeout(() => shell.kill('SIGKILL'), SESSION_MILLISECONDS_MAX);
  return new Promise((resolve) => {
    shell.on('close', () => {
      clearTimeout(timer);
      fs.rmSync(home, { recursive: true, force: true });
      resolve(text);
    });
  });
}

/// The transcript without colours and prompts ("test> ", "rs0 [direct: primary] test> ", "... ").
function bare(text) {
  const plain = text.replace(/\r/g, '').replace(/\u001b\[[0-9;]*[A-Za-z]/g, '');
  return plain.replace(/^((?:[\w-]+ )?(?:\[[^\]]*\] )?[\w-]+> |\.\.\. )+/gm, '');
}

const text = bare(await transcript());
const parts = text.split(/^@@(\d+|end)$/m);
const printed = new Map();
for (let at = 1; at < parts.length; at += 2) printed.set(parts[at], parts[at + 1].trim());

const tally = new Tally(page === undefined ? 'expected.txt' : 'expected-documentation.txt');
function judge(name, line, output, patterns) {
  const missing = output === undefined ? ['anything'] : [patterns].flat().filter((pattern) => !pattern.test(output));
  const trouble = `  typed: ${line}\n  expected: ${missing.join(' and ')}\n  printed: ${(output ?? 'nothing').slice(0, 2000)}`;
  process.stdout.write(tally.judge(name, missing.length === 0 ? undefined : trouble));
  if (isVerbose) console.log(output);
}

if (page === undefined) judge('starts without a warning', '', parts[0].replace(aboutNode, ''), greeting);
steps.forEach(([name, line, patterns], index) => judge(name, line, printed.get(String(index)), patterns));
judge('ends by itself', 'exit', printed.get('end'), []);
process.stdout.write(tally.close());
process.exitCode = tally.failed === 0 ? 0 : 1;
