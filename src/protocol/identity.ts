/**
 * Who submitted, as an identity provider said it of a workload that has no stored API key: the token's issuer and subject,
 * and the claims that the project's trust rule records (OpenID Connect Core 1.0, section 2).
 */
export type Identity = {
  /** The issuer (`iss`), a URL. */
  readonly issuer: string;
  /** The subject (`sub`). */
  readonly subject: string;
  /** Claims by their names, such as `repository`; their values as text. */
  readonly claims: Readonly<Record<string, string>>;
};

/** Reads the identity of a statement's JSON. Undefined if it has another form. */
export function parseIdentity(json: unknown): Identity | undefined {
  if (!isObject(json) || !isObject(json.claims)) return undefined;
  const { issuer, subject, claims } = json;
  if (typeof issuer !== 'string' || typeof subject !== 'string') return undefined;
  const texts = Object.entries(claims);
  if (!texts.every((entry): entry is [string, string] => typeof entry[1] === 'string')) return undefined;
  return { issuer, subject, claims: Object.fromEntries(texts) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
