/** A witness of kind `opentimestamps`: calendars that commit to checkpoints in the Bitcoin blockchain. */
import { WitnessKind } from '../../../gen/attestation/v1/bundle_pb.js';
import { InvalidValue } from '../invalid-value.js';
import { findInteger, findText, reportUnknownMembers, requireTexts } from '../members.js';
import { outboundUrl } from '../setting-types.js';
import { quote, type SettingType } from '../settings.js';
import { COMMON_MEMBERS, type CommonWitnessConfig, readCommon, type WitnessEntry } from './entry.js';

/** Calendars of OpenTimestamps. */
export type OpenTimestampsConfig = CommonWitnessConfig & {
  readonly kind: WitnessKind.OPENTIMESTAMPS;
  /** Their addresses, without a slash at the end. */
  readonly calendars: readonly string[];
  /** How many of them must accept a request. */
  readonly min: number;
  /** The base of an Esplora API that confirms blocks, without a slash at the end. */
  readonly explorerUrl: string | undefined;
};

const MEMBERS = [...COMMON_MEMBERS, 'calendars', 'min', 'explorer_url'];

const MAX_CALENDARS = 16;
const DEFAULT_EVERY_MS = 60 * 60_000;

/** Pending attestations name their calendar by its address in these characters. */
const plainUrl: SettingType<string> = {
  expected: 'an http or https URL of letters, digits and "-._/:", without query',
  secret: true,
  parse: (text) => {
    const url = outboundUrl.parse(text).replace(/\/+$/, '');
    if (!/^[A-Za-z0-9\-._/:]{1,1000}$/.test(url)) throw new InvalidValue();
    return url;
  },
};

/**
 * Reads the members of a set of calendars. By default it is not required, since Bitcoin takes hours, a request is made
 * each hour, and most calendars must accept it.
 */
export function readOpenTimestamps(entry: WitnessEntry): OpenTimestampsConfig {
  reportUnknownMembers(entry, MEMBERS);
  const calendars = requireTexts(entry, 'calendars', plainUrl, MAX_CALENDARS);
  reportRepeatedCalendars(entry, calendars);
  const majority = Math.floor(calendars.length / 2) + 1;
  return {
    ...readCommon(entry, { required: false, everyMs: DEFAULT_EVERY_MS }),
    kind: WitnessKind.OPENTIMESTAMPS,
    calendars,
    min: findInteger(entry, 'min', 1, Math.max(1, calendars.length)) ?? majority,
    explorerUrl: findText(entry, 'explorer_url', plainUrl),
  };
}

function reportRepeatedCalendars({ at, report }: WitnessEntry, calendars: readonly string[]): void {
  const repeated = calendars.find((url, i) => calendars.indexOf(url) !== i);
  if (repeated === undefined) return;
  report({
    name: `${at}.calendars`,
    problem: `has ${quote(repeated)} twice`,
    expected: 'each calendar once',
  });
}
