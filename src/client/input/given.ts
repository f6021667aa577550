/** Types of what callers give. */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { Spelling } from '../../../gen/spellings/spellings.js';

/**
 * A request, or a message in it: the message, or an object of its members, in which a time may be a Date and an enum value
 * a text as REST spells it.
 */
export type Given<D extends DescMessage> = GivenMessage<MessageShape<D>>;

type GivenMessage<M> =
  | M
  | {
      readonly [K in keyof M as Exclude<K, '$typeName' | '$unknown'>]?: GivenValue<M[K]> | undefined;
    };

type GivenValue<V> = V extends Timestamp
  ? Date | GivenMessage<Timestamp>
  : V extends Message
    ? GivenMessage<V>
    : V extends Uint8Array
      ? V
      : V extends readonly (infer Item)[]
        ? readonly GivenValue<Item>[]
        : V extends number
          ? GivenNumber<V>
          : V;

/** An enum's values are single numbers; as text, `number` itself is none. */
type GivenNumber<V extends number> = `${number}` extends `${V}` ? V : V | Spelling<V>;
