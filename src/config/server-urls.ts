/** Types of settings that say where Postgres and NATS are. */
import { InvalidValue } from './invalid-value.js';
import type { SettingType } from './settings.js';

/** A Postgres connection string. */
export const postgresUrl: SettingType<string> = {
  expected: 'a connection string, such as postgres://user:password@host:5432/database',
  secret: true,
  fromFile: true,
  parse: (text) => {
    if (!/^postgres(ql)?:\/\/[^\s/]+(\/\S*)?$/.test(text)) throw new InvalidValue();
    if (text.includes('target_session_attrs=')) {
      throw new InvalidValue(
        'leave out target_session_attrs: of several servers the one that accepts writes is used',
      );
    }
    return text;
  },
};

/** One server: the synchronous standby. */
export const standbyUrl: SettingType<string> = {
  ...postgresUrl,
  expected: 'a connection string of one server, such as postgres://user:password@standby:5432/database',
  parse: (text) => {
    const url = postgresUrl.parse(text);
    if (/^[^/]*\/\/[^/]*,/.test(url)) throw new InvalidValue('name one server, the synchronous standby');
    return url;
  },
};

/** Comma-separated NATS servers. */
export const natsUrl: SettingType<string> = {
  expected: 'one or more comma-separated servers, such as nats://host:4222',
  secret: true,
  fromFile: true,
  parse: (text) => {
    if (!text.split(',').every((server) => /^(nats|tls):\/\/[^\s/,]+\/?$/.test(server)))
      throw new InvalidValue();
    return text;
  },
};
