const OPENSSH =
  /^-----BEGIN OPENSSH PRIVATE KEY-----\n([A-Za-z0-9+/=\n]+)\n-----END OPENSSH PRIVATE KEY-----\n$/;
const PEM =
  /^-----BEGIN (?:RSA |EC )?PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+\n-----END (?:RSA |EC )?PRIVATE KEY-----\n$/;
/** How a key in OpenSSH's own format starts if it is not encrypted (PROTOCOL.key of OpenSSH). */
const UNENCRYPTED = Buffer.from('openssh-key-v1\0\0\0\0\u0004none\0\0\0\u0004none', 'latin1');

/** The text of a private key as `ssh` reads it: lines end in a newline, the last one too. */
export function normaliseSshKey(text: string): string {
  return `${text.replaceAll('\r', '').trim()}\n`;
}

/** The problem of a private key; undefined if it looks like one without a passphrase. */
export function findSshKeyProblem(text: string): string | undefined {
  const key = normaliseSshKey(text);
  if (PEM.test(key)) return undefined;
  const base64 = OPENSSH.exec(key)?.[1];
  if (base64 === undefined)
    return 'ssh_key must be a private key without passphrase, as ssh-keygen writes it';
  const start = Buffer.from(base64, 'base64').subarray(0, UNENCRYPTED.length);
  return start.equals(UNENCRYPTED) ? undefined : 'ssh_key must not have a passphrase';
}

/** The problem of a server's public key, `<type> <base64>`; undefined if the bytes start with the type (RFC 4253). */
export function findHostKeyProblem(text: string): string | undefined {
  const [type = '', base64 = ''] = text.split(' ');
  const start = Buffer.alloc(4);
  start.writeUInt32BE(type.length);
  const expected = Buffer.concat([start, Buffer.from(type)]);
  const bytes = Buffer.from(base64, 'base64');
  const fits = bytes.subarray(0, expected.length).equals(expected) && bytes.length > expected.length;
  return fits ? undefined : "host_key must be what ssh-keyscan prints after the host's name";
}
