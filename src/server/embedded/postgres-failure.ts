import { EmbeddedError, type EmbeddedErrorCode } from './embedded-error.js';

interface KnownFailure {
  pattern: RegExp;
  code: EmbeddedErrorCode;
  advice: string;
}

const KNOWN: readonly KnownFailure[] = [
  {
    pattern: /could not bind|could not create any TCP/,
    code: 'port_taken',
    advice: 'The port is taken: choose another, or none to get a free one.',
  },
  {
    pattern: /No space left on device/,
    code: 'start_failed',
    advice: 'The disk is full: make room and start again, nothing is lost.',
  },
  {
    pattern: /user does not exist/,
    code: 'user_missing',
    advice: 'Give this user an entry in /etc/passwd, or set DATABASE_URL.',
  },
  {
    pattern: /shared memory/,
    code: 'start_failed',
    advice: 'Give this machine or container more shared memory (/dev/shm).',
  },
];

const TELLING = /FATAL:|PANIC:|HINT:|DETAIL:|error:|could not/;

/** Translates the last log lines of a failed Postgres program into a reason and advice. */
export function explainPostgresFailure(dir: string, lines: string[], cause?: unknown): EmbeddedError {
  const trimmed = lines.map((line) => line.trim()).filter((line) => line !== '');
  const reasons = trimmed.filter((line) => TELLING.test(line));
  const detail = (reasons.length === 0 ? trimmed.slice(-5) : reasons).join(' ').replace(/\.?$/, '.');
  const known = KNOWN.find(({ pattern }) => pattern.test(detail));
  const message = `The local Postgres in ${dir} does not start: ${detail} ${known?.advice ?? ''}`;
  return new EmbeddedError(known?.code ?? 'start_failed', message.trim(), { cause });
}
