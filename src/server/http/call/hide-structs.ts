import type { DescField, DescMessage, Message } from '@bufbuild/protobuf';
import { StructSchema } from '@bufbuild/protobuf/wkt';
import type { Fields } from '../../json/message-codec.js';

/** A field that holds a JSON object. */
type Found = { message: Fields; name: string; value: unknown };
/** Adds the fields of a message, and of messages in it, that hold JSON objects. */
type Find = (message: Fields, found: Found[]) => void;

/**
 * Makes what runs `work` while every google.protobuf.Struct of a message is an empty object. protovalidate makes messages of
 * all values in one, although no rule is about them: of 63 KB of invalid metadata that was a third of the processor time
 * (`npm run bench -- --only hostile --attack invalid`). A Struct in a oneof stays as it is.
 */
export function createStructHiding(): <T>(desc: DescMessage, message: Message, work: () => T) => T {
  const compiled = new Map<DescMessage, Find>();
  return (desc, message, work) => {
    const found: Found[] = [];
    compileFind(desc, compiled)(message as Fields, found);
    for (const { message, name } of found) message[name] = {};
    try {
      return work();
    } finally {
      for (const { message, name, value } of found) message[name] = value;
    }
  };
}

function compileFind(desc: DescMessage, compiled: Map<DescMessage, Find>): Find {
  const known = compiled.get(desc);
  if (known !== undefined) return known;
  const finds: Find[] = [];
  const findAll: Find = (message, found) => {
    for (const find of finds) find(message, found);
  };
  compiled.set(desc, findAll);
  for (const field of desc.fields) {
    const find = field.oneof === undefined ? findInField(field, compiled) : undefined;
    if (find !== undefined) finds.push(find);
  }
  return findAll;
}

function findInField(field: DescField, compiled: Map<DescMessage, Find>): Find | undefined {
  const { fieldKind, localName: name } = field;
  if ((fieldKind !== 'message' && fieldKind !== 'list') || field.message === undefined) return undefined;
  if (field.message.typeName === StructSchema.typeName) {
    if (fieldKind === 'list') return undefined;
    return (message, found) => {
      const value = message[name];
      if (value !== undefined) found.push({ message, name, value });
    };
  }
  const find = compileFind(field.message, compiled);
  if (fieldKind === 'list') {
    return (message, found) => {
      for (const item of message[name] as Fields[]) find(item, found);
    };
  }
  return (message, found) => {
    const inner = message[name];
    if (inner !== undefined) find(inner as Fields, found);
  };
}
