import type { DescMessage, JsonValue, MessageShape } from '@bufbuild/protobuf';
import { compileReader } from './reader.js';
import { setWritten, type Written } from './serialized.js';
import type { Fields } from './value.js';

const READ = Symbol('read');
type Lazy = { [READ]: () => Fields };

/**
 * Makes the function that turns spellings into messages. A message of it takes the room of its bytes and costs the
 * REST surface nothing to write; its fields are read out of them when another surface asks, and forgotten again.
 * Compile once per type. Spellings must be the writer's own.
 */
export function compileLazyMessage<D extends DescMessage>(desc: D): (written: Written) => MessageShape<D> {
  const read = compileReader(desc);
  const members: PropertyDescriptorMap = {};
  for (const { localName } of desc.members) {
    // Members of their own, since a field that is only inherited counts as not set.
    members[localName] = {
      enumerable: true,
      get(this: Lazy) {
        return this[READ]()[localName];
      },
    };
  }
  return (written) => {
    let known: WeakRef<object> | undefined;
    const readOnce = () => {
      const fields = known?.deref() ?? read(JSON.parse(written.bytes.toString()) as JsonValue);
      known = new WeakRef(fields);
      return fields as unknown as Fields;
    };
    const message = { $typeName: desc.typeName, [READ]: readOnce };
    return setWritten(Object.defineProperties(message, members), written) as unknown as MessageShape<D>;
  };
}
