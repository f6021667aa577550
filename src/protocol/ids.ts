/** The forms of IDs: a prefix and a ULID. Source: https://github.com/ulid/spec, "Encoding". */

export const SUBMISSION_ID = formOf('sub');
export const PROJECT_ID = formOf('prj');
export const BATCH_ID = formOf('btc');
export const EXPORT_ID = formOf('exp');

function formOf(prefix: string): RegExp {
  return new RegExp(`^${prefix}_[0-7][0-9A-HJKMNP-TV-Z]{25}$`);
}
