import { type DescExtension, type DescFile, type DescService, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';

/** Proto files, indexed by path, symbol and extended type. */
export type DescriptorIndex = {
  /** Full names of the indexed services, in order. */
  services: readonly string[];
  /** Looks up a file by its import path, such as `attestation/v1/batches.proto`. */
  findFile: (path: string) => DescFile | undefined;
  /** Looks up the file that declares a fully-qualified name. */
  findBySymbol: (name: string) => DescFile | undefined;
  /** The extensions of a message type, by its full name. */
  extensionsOf: (typeName: string) => readonly DescExtension[];
  /** Returns a file, first, and its direct and indirect imports, each once. */
  withImports: (file: DescFile) => readonly DescFile[];
  /** Serialises a file's descriptor, once. */
  serialize: (file: DescFile) => Uint8Array;
};

/** Indexes the files of the services, `more` files, and all that they import. */
export function indexDescriptors(
  services: readonly DescService[],
  more: readonly DescFile[],
): DescriptorIndex {
  const roots = [...services.map(({ file }) => file), ...more];
  const files = new Map(roots.flatMap((file) => collectImports(file)).map((file) => [file.proto.name, file]));
  const symbols = new Map<string, DescFile>();
  const extensions: DescExtension[] = [];
  for (const file of files.values()) {
    for (const desc of nestedTypes(file)) {
      for (const name of namesIn(desc)) symbols.set(name, file);
      if (desc.kind === 'extension') extensions.push(desc);
    }
  }
  return {
    services: services.map(({ typeName }) => typeName),
    findFile: (path) => files.get(path),
    findBySymbol: (name) => symbols.get(name),
    extensionsOf: (typeName) => extensions.filter(({ extendee }) => extendee.typeName === typeName),
    withImports: memoise((file) => collectImports(file)),
    serialize: memoise(({ proto }) => toBinary(FileDescriptorProtoSchema, proto)),
  };
}

function collectImports(file: DescFile, found = new Set<DescFile>()): DescFile[] {
  if (!found.has(file)) {
    found.add(file);
    for (const imported of file.dependencies) collectImports(imported, found);
  }
  return [...found];
}

/** Caches the results of `make` by file. */
function memoise<T>(make: (file: DescFile) => T): (file: DescFile) => T {
  const made = new Map<DescFile, T>();
  return (file) => {
    const known = made.get(file) ?? make(file);
    made.set(file, known);
    return known;
  };
}

/** The full names that a declaration declares, without nested types. An enum's values are siblings of the enum. */
function namesIn(desc: ReturnType<typeof nestedTypes> extends Iterable<infer D> ? D : never): string[] {
  const { typeName } = desc;
  switch (desc.kind) {
    case 'message':
      return [typeName, ...[...desc.fields, ...desc.oneofs].map(({ name }) => `${typeName}.${name}`)];
    case 'service':
      return [typeName, ...desc.methods.map(({ name }) => `${typeName}.${name}`)];
    case 'enum': {
      const scope = typeName.slice(0, typeName.lastIndexOf('.') + 1);
      return [typeName, ...desc.values.map(({ name }) => scope + name)];
    }
    case 'extension':
      return [typeName];
  }
}
