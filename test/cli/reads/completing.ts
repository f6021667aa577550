/** What every shell proposes, by the words before and the one being typed, with the files that it may propose left out. */
export const PROPOSALS: readonly [words: string[], proposals: string[]][] = [
  [['ver'], ['verify', 'verify-page']],
  [
    ['keys', 'r'],
    ['revoke', 'rotate'],
  ],
  [['keys', 'create', '--env'], ['--environment']],
  [
    ['keys', 'create', '--environment', ''],
    ['live', 'test'],
  ],
  [['list', '--st'], ['--status']],
  [
    ['list', '--status', ''],
    ['failed', 'partial', 'queued', 'witnessed'],
  ],
  [['list', '--limit', '5', '--status', 'q'], ['queued']],
  [['list', '--url', ''], []],
  [['list', 'keys', 'cre'], []],
  [['bundle', '--format', 's'], ['sigstore.json']],
  [
    ['completion', ''],
    ['bash', 'fish', 'zsh'],
  ],
  [['--ver'], ['--version']],
  [['nonsense', 'keys', 'cre'], ['create']],
];
