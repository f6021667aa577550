/**
 * Opens a git destination and writes an object to it: a program that a test kills. Reads `{context, caFile}` as JSON from
 * standard input.
 */
import { text } from 'node:stream/consumers';
import { openGit } from '../../../../src/server/exports/destinations/git/git.js';
import { makeObject, write } from './destination.js';

const { context, caFile } = JSON.parse(await text(process.stdin));
const opened = await openGit(context, { caFile, path: process.env.PATH });
await write(opened, makeObject('p/1.jsonl', 'line\n'));
await opened.close();
