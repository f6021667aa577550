/** Connections by the environment's settings: proxies, and authorities beside Node's. Node only. */

/** The variables by their names. */
type Env = Readonly<Record<string, string | undefined>>;

/** The part of the package of that name that is used. */
type Undici = Pick<typeof import('undici'), 'EnvHttpProxyAgent' | 'fetch'>;

/**
 * Returns a fetch that goes by `HTTPS_PROXY` and `NO_PROXY`, in either case, for https, and that also trusts the
 * authorities in the PEM file `ATTEST_CA_FILE`; undefined if neither a proxy nor a file is set. `load` imports undici: a
 * program that is bundled has it elsewhere than the library. Throws TypeError if a value cannot be used.
 */
export function createEnvFetch(
  env: Env,
  load: () => Undici | Promise<Undici>,
): typeof globalThis.fetch | undefined {
  const httpsProxy = env.https_proxy || env.HTTPS_PROXY || '';
  const caFile = env.ATTEST_CA_FILE || undefined;
  if (httpsProxy === '' && caFile === undefined) return undefined;
  if (httpsProxy !== '' && !/^https?:\/\/./i.test(httpsProxy)) {
    throw new TypeError('HTTPS_PROXY is not the address of a proxy, as in http://proxy.example.com:3128');
  }
  const tls = caFile === undefined ? {} : { ca: trustedWith(readAuthorities(caFile), env) };
  const open = async () => {
    const { EnvHttpProxyAgent, fetch } = await load();
    const dispatcher = new EnvHttpProxyAgent({
      // Without a value undici takes those of this process.
      httpProxy: '',
      httpsProxy,
      noProxy: env.no_proxy || env.NO_PROXY || '',
      connect: tls,
      requestTls: tls,
      proxyTls: tls,
    });
    return (input: string, init: object) => fetch(input, { ...init, dispatcher });
  };
  let opened: ReturnType<typeof open> | undefined;
  return async (input, init) => {
    opened ??= open();
    const fetch = await opened;
    return (await fetch(String(input), { ...init })) as unknown as Response;
  };
}

/** The fetch of this process's environment for a program that imports the library; undefined in browsers. */
export function findEnvFetch(): typeof globalThis.fetch | undefined {
  const { process } = globalThis;
  const { createRequire } = findBuiltin('node:module') ?? {};
  if (process?.env === undefined || createRequire === undefined) return undefined;
  // Not an import, which would bring undici into the bundles of browsers.
  return createEnvFetch(process.env, () => createRequire(import.meta.url)('undici') as Undici);
}

function readAuthorities(file: string): string {
  let text: string | undefined;
  try {
    text = findBuiltin('node:fs')?.readFileSync(file, 'utf8');
  } catch (cause) {
    throw new TypeError(`ATTEST_CA_FILE cannot be read: ${(cause as Error).message}`, { cause });
  }
  if (!text?.includes('-----BEGIN CERTIFICATE-----')) {
    throw new TypeError(`ATTEST_CA_FILE names ${file}, which has no certificate in PEM`);
  }
  return text;
}

/** These authorities and those that Node trusts anyway. */
function trustedWith(authorities: string, { NODE_EXTRA_CA_CERTS: extra }: Env): string[] {
  const tls = findBuiltin('node:tls');
  const fs = findBuiltin('node:fs');
  const more = extra && fs?.existsSync(extra) ? [fs.readFileSync(extra, 'utf8')] : [];
  return [...(tls?.rootCertificates ?? []), ...more, authorities];
}

/** A module of Node without an import, which would keep this file from loading in a browser. */
function findBuiltin<N extends 'node:fs' | 'node:module' | 'node:tls'>(
  name: N,
): ReturnType<typeof process.getBuiltinModule<N>> | undefined {
  return globalThis.process?.getBuiltinModule?.(name);
}
