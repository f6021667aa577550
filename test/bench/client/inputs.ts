/** What commands are measured with: files, a report and a log, as large as asked for. */
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type Member, zipOf } from '../../cli/results/evaluation/zip-writer.js';

const FOLDER_FILES = 1_000;
const CASE_BYTES = 2_000;
const SAMPLE_CHARACTERS = 1_000;

/** Makes a folder of so many files, a thousand in each of its folders. Each has a content of its own. */
export function makeFiles(folder: string, count: number, kib = 1): void {
  const rest = ' '.repeat(kib * 1024);
  for (let n = 0; n < count; n++) {
    const below = join(folder, String(Math.floor(n / FOLDER_FILES)).padStart(4, '0'));
    if (n % FOLDER_FILES === 0) mkdirSync(below, { recursive: true });
    const content = `{"sample": ${n}}${rest}`.slice(0, rest.length);
    writeFileSync(join(below, `sample-${n % FOLDER_FILES}.json`), content);
  }
}

/** Writes a JUnit report of so many cases, 2 KB each. */
export function writeReport(file: string, cases: number): void {
  const output = 'y'.repeat(CASE_BYTES);
  const fd = openSync(file, 'w');
  writeSync(fd, '<testsuites><testsuite name="s">\n');
  for (let i = 0; i < cases; i++) {
    const names = `classname="tests.m${i % 100}" name="t${i}"`;
    writeSync(fd, `<testcase ${names}><system-out>${output}</system-out></testcase>\n`);
  }
  writeSync(fd, '</testsuite></testsuites>\n');
  closeSync(fd);
}

/** Writes a log as inspect_ai does, of so many samples of 1 KB, compressed by deflate. */
export function writeLog(file: string, samples: number): void {
  const header = {
    version: 2,
    status: 'success',
    eval: { task: 'arithmetic', model: 'mockllm/model' },
    results: { total_samples: samples, completed_samples: samples, scores: [] },
  };
  const members: Member[] = [{ name: 'header.json', content: JSON.stringify(header) }];
  for (let id = 0; id < samples; id++) {
    const input = `What is ${id} + 1? `.repeat(SAMPLE_CHARACTERS / 20);
    const content = JSON.stringify({ id, epoch: 1, input, target: String(id + 1) });
    members.push({ name: `samples/${id}_epoch_1.json`, content, method: 8 });
  }
  writeFileSync(file, zipOf(members, { zip64: true }));
}
